"""What there is several of, so that the loss of one for good ends no market."""
