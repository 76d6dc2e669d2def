"""Points at which an agent is killed: just before, or just after, a message of a role leaves; and what follows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from swarm_market import Market, until

Point = tuple[str, str, int]
"""A role, what it sends (`performative Content`), and which time."""


def points(messages: Iterable[Point], *in_every_run: tuple[Point, str]) -> pytest.MarkDecorator:
    """A test for every message, with the agent that sends it killed before that and after it.

    Args:
        messages: what is sent.
        in_every_run: kills that `make e2e` tries; the others are left to `make e2e-full`.
    """
    return pytest.mark.parametrize(
        ("role", "act", "nth", "when"),
        [
            pytest.param(
                *message,
                when,
                id="-".join(map(str, (*message, when))),
                marks=[] if (message, when) in in_every_run else pytest.mark.full,
            )
            for message, when in itertools.product(messages, ("before", "after"))
        ],
    )


def killed(market: Market) -> str:
    """Wait until the trap has struck and whoever walked into it is up again; its name."""
    name: str = until(market.victim, lambda: f"somebody walks into the trap\n{market.logs()}")
    until(lambda: market.agent(name)["state"] == "ready", f"{name} is up again")
    return name


def requested(market: Market, request_id: str) -> list[dict[str, Any]]:
    """Alice's agreements of a request."""
    return [each for each in market.agreements("alice") if each["agreement"]["request_id"] == request_id]
