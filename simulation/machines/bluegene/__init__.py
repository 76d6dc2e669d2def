"""Machines of cabled lines: Blue Gene/L with its multi-toroidal links, and the plain torus."""
