"""Local XMPP servers that RAMP can start itself: the embedded server and Prosody."""
