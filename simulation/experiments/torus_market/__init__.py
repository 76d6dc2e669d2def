"""A market of live torus machines: what request size, torus share and a price for fragmentation do."""
