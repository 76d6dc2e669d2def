"""A site answers for all its machines in one stanza: who is reached through whom, on both sides."""
