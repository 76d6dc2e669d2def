"""Resizes of a user's slots: one amendment, one order, and all of them."""
