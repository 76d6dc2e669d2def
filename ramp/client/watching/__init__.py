"""Everything that goes on with the requests of all users of a market, for those who own it."""
