"""KOALA's placement policies, one a file, by name (section 4.1 of the paper)."""
