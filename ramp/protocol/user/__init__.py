"""The User Agent as a state machine: it asks, lets resources bid, and buys all or nothing."""
