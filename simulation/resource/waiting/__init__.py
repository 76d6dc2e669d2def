"""Machines that do not reserve, simulated: their jobs join a queue, and start when it is their turn or as is drawn."""
