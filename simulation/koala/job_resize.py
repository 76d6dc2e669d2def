"""A change of size as a protocol between malleability manager and application: its states, as a table.

Growing: the manager offers processors; the application says how many it takes; stubs are submitted and held while it
computes; it is suspended, takes them in, and resumes. Shrinking: the manager asks for processors; the
application says how many it gives, is suspended while it gives up their work, resumes, and only then are they released
(sections 5.1 and 5.3 of the paper). An application may give processors back unasked. Every message is a hint
(voluntary, section 2.3).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from ramp.errors import InvariantViolated


class State(enum.StrEnum):
    """Of a change."""

    NEW = "new"
    OFFERED = "offered"
    ALLOCATING = "allocating"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    REQUESTED = "requested"
    RECLAIMING = "reclaiming"
    RELEASING = "releasing"
    RELEASED = "released"
    DECLINED = "declined"
    ENDED = "ended"


class Stimulus(enum.StrEnum):
    """What moves a change on."""

    OFFER = "the manager offers"
    ACCEPT = "the application accepts"
    DECLINE = "the application declines"
    STUBS_HELD = "all stubs are held"
    TAKEN_IN = "processes are started and data are redistributed"
    REQUEST = "the manager asks for processors"
    GIVE_BACK = "the application gives processors back unasked"
    GIVEN_UP = "data are redistributed"
    RELEASED = "the batch system has them back"
    JOB_ENDED = "the job ends or crashes"


FINAL: Final = frozenset({State.RESUMED, State.RELEASED, State.DECLINED, State.ENDED})
"""States of changes that are over."""

TRANSITIONS: Final[dict[tuple[State, Stimulus], State]] = {
    (State.NEW, Stimulus.OFFER): State.OFFERED,
    (State.NEW, Stimulus.REQUEST): State.REQUESTED,
    (State.NEW, Stimulus.GIVE_BACK): State.RECLAIMING,
    (State.OFFERED, Stimulus.ACCEPT): State.ALLOCATING,
    (State.OFFERED, Stimulus.DECLINE): State.DECLINED,
    (State.ALLOCATING, Stimulus.STUBS_HELD): State.SUSPENDED,
    (State.ALLOCATING, Stimulus.JOB_ENDED): State.ENDED,
    (State.SUSPENDED, Stimulus.TAKEN_IN): State.RESUMED,
    (State.SUSPENDED, Stimulus.JOB_ENDED): State.ENDED,
    (State.REQUESTED, Stimulus.ACCEPT): State.RECLAIMING,
    (State.REQUESTED, Stimulus.DECLINE): State.DECLINED,
    (State.RECLAIMING, Stimulus.GIVEN_UP): State.RELEASING,
    (State.RECLAIMING, Stimulus.JOB_ENDED): State.ENDED,
    (State.RELEASING, Stimulus.RELEASED): State.RELEASED,
    (State.RELEASING, Stimulus.JOB_ENDED): State.ENDED,
}
"""Every legal step; all others are bugs."""


@dataclass(slots=True)
class Change:
    """One change of a job's size in one cluster.

    Attributes:
        job: its number.
        cluster: where processors come or go.
        processors: offered or asked for at first, accepted later.
        state: where it stands.
    """

    job: int
    cluster: str
    processors: int = 0
    state: State = State.NEW

    def step(self, stimulus: Stimulus) -> None:
        """Move on.

        Raises:
            InvariantViolated: the table has no such step.
        """
        following = TRANSITIONS.get((self.state, stimulus))
        if following is None:
            raise InvariantViolated(
                "changes of size", f"job {self.job}: a change that is {self.state} cannot go on when {stimulus}"
            )
        self.state = following

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in FINAL
