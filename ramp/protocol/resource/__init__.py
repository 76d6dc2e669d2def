"""The Resource Agent as a state machine: it sells, holds and books."""
