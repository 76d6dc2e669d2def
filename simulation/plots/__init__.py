"""Pictures of one run and of a machine, and the style of all pictures."""
