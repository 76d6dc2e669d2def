"""Parties as agents: the roles, their processes, and the supervisor that starts them and keeps them alive."""
