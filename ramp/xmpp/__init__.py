"""XMPP transport: addresses, connections and stanzas. The only package that imports SPADE and slixmpp."""
