"""The interface between a Resource Agent and the machine it sells, and its registry."""
