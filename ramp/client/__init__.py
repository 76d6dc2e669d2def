"""The market as its users' programs see it: typed, blocking or for asyncio, over the control channel.

`import ramp` offers its public part; the command line uses it.
"""
