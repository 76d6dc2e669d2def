"""What processes write for people and programs: logs that are rotated, and events, one line each."""
