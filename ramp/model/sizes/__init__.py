"""Requests whose size the seller may choose: speed-up laws, and the times and costs of a moldable unit's sizes."""
