"""Guests: external plug-ins and price strategies, each in a separate process that can be killed."""
