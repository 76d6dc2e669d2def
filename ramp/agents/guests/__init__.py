"""Plug-ins and price strategies from outside the project, each in a process of its own that can be killed."""
