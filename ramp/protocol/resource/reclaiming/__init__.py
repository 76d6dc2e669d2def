"""Cores that a resource takes back of what it has sold, by right: one reclamation, all of them, and when it does so."""
