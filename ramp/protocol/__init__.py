"""The market's protocols as pure state machines: events and the time in, ordered effects out."""
