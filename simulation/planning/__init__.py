"""Availability over time and space: what is taken on a machine when, and where and when a request fits."""
