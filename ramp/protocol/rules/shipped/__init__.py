"""The auction rules that come with RAMP, one a file; a rule's name is that of its file, with hyphens."""
