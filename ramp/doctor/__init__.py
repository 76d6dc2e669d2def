"""Looking a market over: what is wrong with it, its computers and its batch systems, and what to do about each."""
