"""The market as its users' programs see it: typed, blocking or for asyncio, over the control channel.

`import ramp` offers what is public of it; the command line is its first client.
"""
