"""The interface between a Resource Agent and the machine it sells, how its answers are judged, and its contract."""
