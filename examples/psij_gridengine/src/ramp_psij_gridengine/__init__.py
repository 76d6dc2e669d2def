"""PSI/J executor for Grid Engine."""
