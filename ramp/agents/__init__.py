"""Parties as agents: the roles, their processes, and the supervisor that starts and restarts them."""
