"""What becomes of what a user has bought, until it is over."""
