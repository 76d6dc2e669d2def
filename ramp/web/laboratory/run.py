"""What is known of a run of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.instant import Instant


class RunState(StrEnum):
    """How a run is."""

    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Run:
    """A run.

    Attributes:
        number: tells runs apart.
        experiment: its name.
        arguments: of the command line behind `ramp experiment run`, without the folder.
        state: how it is.
        begun_at: when it was begun.
        ended_at: when it ended, or None.
        done: simulations that have ended.
        total: of all simulations, 0 as long as that is not known.
        left: how long the rest will take, in words, or empty.
        problem: why it has failed, as the command says it, or empty.
    """

    number: int
    experiment: str
    arguments: tuple[str, ...]
    state: RunState
    begun_at: Instant
    ended_at: Instant | None = None
    done: int = 0
    total: int = 0
    left: str = ""
    problem: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in (RunState.STOPPED, RunState.FAILED, RunState.DONE)
