"""Predict when a job submitted to a queue now will start: bounds on waits, and probabilities to start by a time.

For machines without reservations. A predictor (`predictors/`, one per file, found by its name) learns from the jobs
that start on a queue and answers for jobs submitted to it. Pure: callers pass in the time and the queue.
"""
