"""Workloads drawn from a model."""
