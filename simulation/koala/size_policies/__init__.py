"""Size policies, one a file; the name is the name of the file."""
