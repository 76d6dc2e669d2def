"""What lies ahead of a KOALA simulation, and the order of what happens in one instant."""

from __future__ import annotations

import enum
from typing import Any

from simulation.kernel import EventQueue


class Kind(enum.IntEnum):
    """Kinds of events in the order in which simultaneous ones happen: what frees processors comes first."""

    LOCAL_END = 0
    JOB_END = 1
    CRASH = 2
    RELEASED = 3
    GIVEN_UP = 4
    TAKEN_IN = 5
    STUBS_HELD = 6
    LOCAL_SUBMISSION = 7
    CLAIM = 8
    SUBMISSION = 9
    POLL = 10


class Agenda:
    """Future events."""

    def __init__(self) -> None:
        self._events: EventQueue[tuple[Kind, Any]] = EventQueue()

    @property
    def now(self) -> int:
        return self._events.now

    def at(self, time: int, kind: Kind, subject: Any) -> int:
        """Put an event on the agenda; a ticket for `cancel`."""
        return self._events.schedule(time, (kind, subject), kind)

    def cancel(self, ticket: int | None) -> None:
        """Take an event off, if it is still ahead."""
        if ticket is not None:
            self._events.cancel(ticket)

    def next_time(self) -> int:
        """Return the time of the next event, or now where none is ahead."""
        following = self._events.next_time()
        return self.now if following is None else following

    def pop(self) -> tuple[Kind, Any]:
        """Advance to the next event and return it."""
        return self._events.pop()
