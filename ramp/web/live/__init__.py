"""Events of the market, kept in bounded memory for the open pages of each user."""
