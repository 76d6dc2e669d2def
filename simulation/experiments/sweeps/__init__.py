"""Sweeps: a simulation or an experiment at every combination of some parameters, resumed where it was cut off."""
