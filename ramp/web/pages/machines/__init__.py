"""Pages of machines and of prices."""
