"""Certificates, seals, XML signatures, and proofs made of them."""
