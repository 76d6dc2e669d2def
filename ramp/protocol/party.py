"""What a host runs: the contract that user, resource, bank and directory fulfil alike."""

from __future__ import annotations

from typing import Protocol

from ramp.model.instant import Instant
from ramp.protocol.effects import Effect
from ramp.protocol.events import Event


class Party(Protocol):
    """One agent's whole protocol as a pure state machine.

    Every entry takes the present time, which never goes back, and returns effects in the order in which they must be
    carried out. `tick` may be called whenever `now >= deadline`; calling it early does nothing.
    """

    name: str
    deadline: Instant | None

    def start(self, now: Instant) -> list[Effect]:
        """Begin, with no memory of an earlier life."""
        ...

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take one event.

        Raises:
            RemoteProtocolError: if a peer's message has no place; its sender is told NOT_UNDERSTOOD.
        """
        ...

    def tick(self, now: Instant) -> list[Effect]:
        """Let everything act whose deadline has come."""
        ...
