"""One machine and its queue in virtual time."""
