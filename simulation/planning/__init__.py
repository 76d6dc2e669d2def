"""Availability over time and space: the use of a machine, and where and when a request fits."""
