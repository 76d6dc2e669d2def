"""`ramp watch`: the market as it goes on, at a terminal or as lines."""
