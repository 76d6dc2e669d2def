"""Bundles: one stanza for several machines of a site."""
