"""The directory of resources as a state machine, and its pages."""
