"""The buyers' jobs on a resource's sold slots, and the launcher's terms."""
