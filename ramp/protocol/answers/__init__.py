"""What answers a party's questions from outside the pure core, one module for each who is asked."""
