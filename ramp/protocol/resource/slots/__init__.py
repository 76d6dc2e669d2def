"""The accepted offers of a resource, and the resizes of its sold slots."""
