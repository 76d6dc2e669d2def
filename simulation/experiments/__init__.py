"""Studies that reproduce the papers' tables and figures, one folder a paper; `trials` runs markets for them."""
