"""How the tables of a configuration are read."""
