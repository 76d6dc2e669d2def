"""The Resource Agent as a state machine: it offers, holds and sells slots."""
