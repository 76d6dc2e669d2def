"""Invariants of the market, one a file."""
