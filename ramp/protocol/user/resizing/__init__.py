"""Making smaller what a user has bought: one change, and all of them."""
