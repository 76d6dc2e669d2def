"""Documents about what was bought: jobs on it, and its moves to other places of its machine."""
