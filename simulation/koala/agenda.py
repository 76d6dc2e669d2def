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


class Agenda(EventQueue[tuple[Kind, Any]]):
    """Future events, each with its subject."""

    __slots__ = ()

    def at(self, time: int, kind: Kind, subject: Any) -> int:
        """Put an event on the agenda; a ticket for `cancel`."""
        return self.schedule(time, (kind, subject), kind)
