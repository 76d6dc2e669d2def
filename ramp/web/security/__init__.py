"""Who may see which page: addresses that are served, sessions, and the gate before everything."""
