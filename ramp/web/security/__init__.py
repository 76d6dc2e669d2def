"""Access to the pages: served addresses, sessions, sign-in and the gate."""
