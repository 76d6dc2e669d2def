"""The only place that knows SPADE and XMPP."""
