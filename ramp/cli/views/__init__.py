"""Output for people: reports, tables and the live view of an auction."""
