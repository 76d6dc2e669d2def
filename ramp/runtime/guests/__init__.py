"""Plug-ins and price strategies as guests: asked with a time limit, checked, and asked again after a pause."""
