"""An example for RAMP: a batch system in one SQLite file, the plug-in that sells it, and a price strategy."""
