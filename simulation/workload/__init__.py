"""Workload logs and generators: Standard Workload Format, replay, metrics."""
