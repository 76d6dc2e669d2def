"""The Blue Gene/L paper: multi-toroidal links."""
