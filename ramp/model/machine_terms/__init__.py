"""A machine's properties, compared with terms of requests that no price and no time change."""
