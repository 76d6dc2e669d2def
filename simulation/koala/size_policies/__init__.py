"""Whose size to change, one policy a file: the paper's two, and references beside them."""
