"""Plug-ins for real batch systems: their common part, and one folder per system."""
