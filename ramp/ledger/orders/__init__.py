"""Orders of a buyer: money reserved for all units of a purchase, and its fate."""
