"""The market in virtual time: the same hosts as the agents run, over a faulty network."""
