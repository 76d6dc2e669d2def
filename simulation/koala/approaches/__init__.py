"""Approaches to job management, one a file; the name is the name of the file."""
