"""When jobs start: planners and queueing policies that know no particular machine."""
