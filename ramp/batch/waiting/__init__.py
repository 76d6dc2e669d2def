"""Queues without reservations: held jobs of a batch system, sold with the probability that they start in time."""
