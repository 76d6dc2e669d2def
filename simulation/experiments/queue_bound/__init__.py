"""How well waits on queues can be bounded: predictors on whole workload logs."""
