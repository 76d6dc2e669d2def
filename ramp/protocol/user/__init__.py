"""The User Agent as a state machine: it requests offers and buys all units or none."""
