"""The verbs of the simulated world: click commands that join `ramp` through the entry point group `ramp.commands`."""
