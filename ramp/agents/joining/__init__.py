"""What the supervisor does for markets of several sites."""
