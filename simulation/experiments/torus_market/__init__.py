"""A market of torus machines: what shapes and prices do to one another."""
