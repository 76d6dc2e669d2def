"""The market paper: rounds, units, users, workloads, a network of hosts; and beyond it, scale and auction rules."""
