"""Pictures made from result files."""
