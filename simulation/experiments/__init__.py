"""Studies that reproduce the papers' tables and figures, one folder a paper."""
