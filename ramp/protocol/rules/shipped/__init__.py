"""The auction rules of RAMP, one a file; a rule is named like its file, with hyphens."""
