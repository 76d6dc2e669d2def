"""Orders of a buyer's agent: money set aside for all units of a purchase, and what becomes of it."""
