"""Amendments of paid agreements: the bank's decisions and refunds."""
