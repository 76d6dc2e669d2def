"""What a host runs: the contract that user, resource, bank and directory fulfil alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ramp.model.instant import Duration, Instant
from ramp.protocol.effects import Effect
from ramp.protocol.events import Event
from ramp.protocol.records import Record


class Party(Protocol):
    """One agent's whole protocol as a pure state machine.

    Every entry takes the present time, and returns effects in the order in which they must be carried out. `tick` may
    be called whenever `now >= deadline`; calling it early does nothing. The present time is that of the wall clock, and
    goes on evenly but for what `clock_set` has told before.
    """

    name: str
    deadline: Instant | None

    def start(self, now: Instant) -> list[Effect]:
        """Begin, with no memory of an earlier life."""
        ...

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Go on where an earlier life ended.

        Args:
            records: what the journal holds, the oldest first; at least one.
            now: the present.
        """
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

    def clock_set(self, by: Duration) -> None:
        """The wall clock has been set: from the next entry on it shows so much more, or less, than it would have.

        What is meant as a duration (pauses, limits, leases) stays as far away as it was; what is dated (an order's end,
        a slot's start) stays where it is.
        """
        ...
