"""The control channel as one typed table: requests of owners to their agents, and the answers."""
