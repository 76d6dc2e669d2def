"""The predictors that come with RAMP, one a file; a file's name is the predictor's."""
