"""What the requests of a seed may ask, each kind drawn from a stream of its own."""
