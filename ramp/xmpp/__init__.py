"""Parties on XMPP: addresses, connections, stanzas in and out. Only here and in the agents is SPADE known."""
