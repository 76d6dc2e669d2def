"""Jobs on reservations: orders and states."""
