"""Pages of machines and prices."""
