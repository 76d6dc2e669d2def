"""Data for pages of machines: units of a torus, cores of a flat machine, and prices over time."""
