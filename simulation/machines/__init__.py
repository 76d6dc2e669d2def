"""What simulated hardware is and what fits on it, pure."""
