"""What goes wrong in a simulated market, drawn from a seed: who breaks, is late or lies; and bugs that are planted."""
