"""Double-entry bookkeeping in integer minor units, pure."""
