"""The server spreads one stanza to many receivers (XEP-0033, Extended Stanza Addressing)."""
