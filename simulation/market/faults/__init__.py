"""What goes wrong in a simulated market: drawn from a seed."""
