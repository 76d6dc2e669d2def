"""The pages, one per file; `register.py` lists them."""
