"""The market's protocols as pure state machines: events and the time in, ordered effects out.

`user`, `resource`, `bank` and `directory` are the roles, each with its whole machine in `party`; `rules` says how an
auction goes. The modules here are what they have in common.
"""
