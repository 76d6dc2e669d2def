"""`ramp watch`: events of the market, at a terminal or as lines."""
