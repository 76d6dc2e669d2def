"""What pages draw of machines: places of a torus, cores of a flat one, and prices over time."""
