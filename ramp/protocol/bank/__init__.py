"""The Banking Agent as a state machine, and the keeper who gives it orders."""
