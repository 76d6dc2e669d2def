"""Verbs with which a site joins a market: `ramp invite`, `ramp join`."""
