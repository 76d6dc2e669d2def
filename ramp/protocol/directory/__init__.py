"""The directory of resources as a state machine, and the pages of its listing."""
