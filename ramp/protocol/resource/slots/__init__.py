"""The accepted offers that a resource has at hand, and the changes of what it has sold."""
