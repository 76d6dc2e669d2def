"""What goes on in the market, kept for the pages that are open: bounded, and the same for every page of a user."""
