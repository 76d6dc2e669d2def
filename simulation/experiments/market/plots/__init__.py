"""Pictures of the market paper's studies, from their result files."""
