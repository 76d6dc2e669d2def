"""Submits a request to a running market; for the probes beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ramp.client import swarm
from ramp.client.line import SocketLine
from ramp.control.events import RequestEnded
from ramp.control.requests import Submit
from ramp.protocol.events import AuctionOptions
from ramp.runtime.state_folder import StateFolder

__all__ = ["Ended", "children_of", "submit", "swarm"]


@dataclass(frozen=True)
class Ended:
    """How a request ended; seconds.

    Attributes:
        status: of the outcome.
        duration: from submission to the end.
        rounds: the duration of every round.
        refusals: codes of all refusals of all rounds.
    """

    status: str
    duration: float
    rounds: tuple[float, ...]
    refusals: tuple[str, ...]


def submit(state: StateFolder, document: str, **options: Any) -> Ended:
    """Let `user1` submit a request and follow it to its end."""
    with SocketLine(state.socket("user1")) as line:
        *_, last = line.events(Submit(document, options=AuctionOptions(**options)))
    assert isinstance(last, RequestEnded), last
    return Ended(
        str(last.outcome.status),
        last.outcome.duration / 1e6,
        tuple(each.duration / 1e6 for each in last.outcome.rounds),
        tuple(str(refused.refusal.code) for each in last.outcome.rounds for refused in each.refusals),
    )


def children_of(state: StateFolder) -> list[Any]:
    """The processes of the market."""
    import psutil

    status = swarm.status(state)
    assert status is not None
    return psutil.Process(status.pid).children(recursive=True)
