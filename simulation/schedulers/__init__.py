"""Planners and queueing policies, independent of the machine."""
