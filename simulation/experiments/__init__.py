"""Studies that reproduce the papers' tables and figures, one a file."""
