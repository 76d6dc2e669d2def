"""Slurm: its questions and answers, its reservations, and the plug-in `slurm` that sells it."""
