"""Boxes of a torus: found, ranked and chosen."""
