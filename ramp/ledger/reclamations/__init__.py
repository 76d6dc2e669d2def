"""Reclamations of paid agreements: of which the bank has had notice, and what has become of each."""
