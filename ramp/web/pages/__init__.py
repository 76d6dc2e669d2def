"""The pages, one a file; `register.py` has them all."""
