"""What the laboratory's pages know: results of experiments on disk, runs that go on, and traces of simulations."""
