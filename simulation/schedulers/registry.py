"""Schedulers by name."""

from __future__ import annotations

from typing import Final

from ramp.errors import ConfigurationError
from simulation.schedulers.conservative import ConservativeBackfill
from simulation.schedulers.easy import EasyBackfill
from simulation.schedulers.fcfs import FirstComeFirstServed
from simulation.schedulers.first_fit import AggressiveFirstFit
from simulation.schedulers.interface import Scheduler
from simulation.schedulers.window_first_fit import WINDOW_DEFAULT, WindowCounts, WindowFirstFit
from simulation.schedulers.window_room_ahead import WindowRoomAhead

SCHEDULER_NAMES: Final = (
    FirstComeFirstServed.name,
    AggressiveFirstFit.name,
    WindowFirstFit.name,
    WindowRoomAhead.name,
    EasyBackfill.name,
    ConservativeBackfill.name,
)
"""All names that `make_scheduler` knows."""


def make_scheduler(
    name: str, *, window: int = WINDOW_DEFAULT, window_counts: WindowCounts = WindowCounts.INDICES
) -> Scheduler:
    """A scheduler with an empty queue.

    Args:
        name: one of `SCHEDULER_NAMES`.
        window: jobs that window first-fit looks at; the others do not use it.
        window_counts: what that window counts.

    Raises:
        ConfigurationError: no scheduler has that name.
    """
    if name == WindowFirstFit.name:
        return WindowFirstFit(window, window_counts)
    if name == WindowRoomAhead.name:
        return WindowRoomAhead(window, window_counts)
    for scheduler in (FirstComeFirstServed, AggressiveFirstFit, EasyBackfill, ConservativeBackfill):
        if name == scheduler.name:
            return scheduler()
    raise ConfigurationError(f"no scheduler is called {name!r}; known: {', '.join(SCHEDULER_NAMES)}", key="scheduler")
