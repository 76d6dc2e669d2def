"""Pictures of the market experiments, from their result files."""
