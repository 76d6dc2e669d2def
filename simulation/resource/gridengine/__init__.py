"""A machine of the market in the words of Grid Engine."""
