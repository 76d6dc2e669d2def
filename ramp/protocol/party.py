"""`Party`: the interface between a host and the protocol of a user, resource, bank or directory."""

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
    be called whenever `now >= deadline`; calling it early does nothing. The present time is that of the wall clock. It
    runs evenly, except for steps announced by `clock_set`.
    """

    name: str

    @property
    def deadline(self) -> Instant | None:
        """When to call `tick` next, or None."""
        ...

    def start(self, now: Instant) -> list[Effect]:
        """Start without any earlier records."""
        ...

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume from the journal's records of an earlier run, oldest first; at least one."""
        ...

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Handle one event.

        Raises:
            RemoteProtocolError: if a peer's message is unexpected; its sender gets NOT_UNDERSTOOD.
        """
        ...

    def tick(self, now: Instant) -> list[Effect]:
        """Handle every deadline that has passed."""
        ...

    def clock_set(self, by: Duration) -> None:
        """Take a step of the wall clock: all later times are this much greater, or smaller.

        Durations (pauses, limits, leases) keep their remaining length; dates (an order's end, a slot's start) stay.
        """
        ...
