"""When will a job start that is submitted to a queue now: bounds on waits, and chances to start by a time.

For machines that nobody can reserve. A predictor (`predictors/`, one a file, found by its name) learns from the jobs
that start on a queue and answers for jobs that are submitted to it. Pure: whoever asks brings the time and the queue.
"""
