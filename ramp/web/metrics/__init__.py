"""Metrics of the market in the text format of Prometheus."""
