"""Plug-ins that let a Resource Agent front a simulated machine."""
