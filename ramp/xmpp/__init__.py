"""Parties on XMPP: addresses, connections, stanzas in and out. The only place with SPADE and slixmpp."""
