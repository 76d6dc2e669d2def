"""The web pages of the market, served by `ramp web`; requires the extra `web`."""
