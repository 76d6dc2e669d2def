"""XMPP servers that a market of one computer brings along: the embedded one and Prosody."""
