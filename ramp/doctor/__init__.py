"""Diagnosis of a market, its computers and its batch systems, with suggested fixes."""
