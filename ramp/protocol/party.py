"""`Party`: the interface between a host and the protocol of a user, resource, bank, directory or office."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ramp.model.instant import Instant
from ramp.protocol.conversations import Registry
from ramp.protocol.effects import Effect
from ramp.protocol.events import Event
from ramp.protocol.records import Record


class Party(Registry, ABC):
    """One agent's whole protocol as a pure state machine, and the registry of its conversations and timers.

    Every entry takes the present time, and returns effects in the order in which they must be carried out. `tick` may
    be called whenever `now >= deadline`; calling it early does nothing. The present time is that of the wall clock. It
    runs evenly, except for steps announced by `clock_set`: durations (pauses, limits, leases) then keep their remaining
    length, and dates (an order's end, a slot's start) stay.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def start(self, now: Instant) -> list[Effect]:
        """Start without any earlier records."""
        return []

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Resume from the journal's records of an earlier run, oldest first; at least one."""
        return self.start(now)

    @abstractmethod
    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Handle one event.

        Raises:
            RemoteProtocolError: if a peer's message is unexpected; its sender gets NOT_UNDERSTOOD.
        """

    def resume(self, reference: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Forget a conversation and resume it from its records, as after a restart.

        Args:
            reference: the party's name for it in `ramp.protocol.conversations.guarded`.
            records: the whole journal; empty without a journal.
            now: the present.
        """
        return []

    def forget(self, reference: str) -> None:
        """Suspend a conversation that raises again: it stays on record, and out of memory until the next start."""
        return
