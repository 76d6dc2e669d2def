"""Amendments of paid agreements: what the bank has decided of each, and what it has given back for it."""
