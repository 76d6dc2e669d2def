"""The control channel as one typed table: what an owner may ask of its agent, and what is answered."""
