"""Requests whose size the seller may choose: speed-up laws, and what a moldable unit's sizes mean in time and money."""
