"""Jobs on what was bought: what is to be run and the orders that it takes, and how a job stands."""
