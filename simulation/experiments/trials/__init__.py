"""Running markets for experiments: planned once, run in virtual time, or as processes on one host or several."""
