"""The market's protocols as pure state machines: events and time in, ordered effects out.

`user`, `resource`, `bank` and `directory` are the roles, each with its whole machine in `party`; `rules` has the
auction rules. The modules here are shared.
"""
