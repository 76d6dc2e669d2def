"""The buyer's side of contract changes: cancellations, claims, and changes of size."""
