"""Documents with which parties join a market, one module a family."""
