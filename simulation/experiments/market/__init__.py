"""The market paper: rounds, units, users and scale."""
