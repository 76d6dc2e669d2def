"""Malleable jobs on a multicluster (Buisson and others 2007), and on workload logs (beyond it)."""
