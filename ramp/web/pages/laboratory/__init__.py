"""Pages of the laboratory: results of experiments, runs, and traces that are played."""
