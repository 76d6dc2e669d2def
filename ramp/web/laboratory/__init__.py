"""The laboratory without its pages: results of experiments, runs, and traces of simulations."""
