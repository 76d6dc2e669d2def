"""Local XMPP servers that RAMP can start itself: the embedded server and Prosody."""

from typing import Final

LOOPBACK: Final = "127.0.0.1"
"""The only address on which local servers listen."""
