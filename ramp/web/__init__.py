"""The market in a browser: `ramp web` serves it; what it needs is in the extra `web`."""
