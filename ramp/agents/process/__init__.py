"""One process of a swarm, as the supervisor starts it."""
