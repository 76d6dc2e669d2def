"""Auction rules: interface, checks of their answers, and prices paid; `shipped` has the rules."""
