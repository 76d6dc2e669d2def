"""Window first-fit: the scheduling of the 2019 Angara allocation study.

A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019: a waiting job may start when its index exceeds
the smallest index among the waiting jobs by less than w, and it fits. Started jobs keep using up window positions, so w
limits how far any job may overtake the oldest waiting one. The other reading, a window over the first w jobs that still
wait, is an option.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from ramp.options import Bounds
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site

WINDOW_DEFAULT: Final = 16
"""Window where none is asked for: the middle of the study's 1 to 128."""


class WindowCounts(enum.StrEnum):
    """Meaning of a window position."""

    INDICES = "indices"
    """Numbers of submission, as printed in the study."""
    WAITING = "waiting"
    """Jobs that still wait."""


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """Options of the schedulers with a window.

    Attributes:
        window: w, number of jobs considered; 1 is first come, first served.
        window_counts: meaning of a window position: a submission number or a waiting job.
    """

    window: Annotated[int, Bounds(1)] = WINDOW_DEFAULT
    window_counts: WindowCounts = WindowCounts.INDICES


class WindowFirstFit:
    """First-fit over a window of the queue.

    Args:
        options: the window.
    """

    def __init__(self, options: WindowOptions) -> None:
        self._window = options.window
        self._counts = options.window_counts
        self._queue: dict[int, Job] = {}  # by index of submission, in order
        self._submitted = 0
        self._failed: set[object] = set()

    def submit(self, job: Job) -> None:
        self._queue[self._submitted] = job
        self._submitted += 1

    def released(self) -> None:
        self._failed.clear()

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue.values())

    def decide(self, site: Site) -> int | None:
        """Start jobs that fit within the window; the window moves when the oldest job starts."""
        if site.reservations:
            self._failed.clear()  # failures then depend on the jobs' lengths, too
        found = self._first_that_fits(site)
        while found is not None:
            found = self._first_that_fits(site)
        return None

    def _first_that_fits(self, site: Site) -> Job | None:
        first: int | None = None
        for position, (index, job) in enumerate(self._queue.items()):
            if first is None:
                first = index
            if (index - first if self._counts is WindowCounts.INDICES else position) >= self._window:
                return None
            if job.kind in self._failed:
                continue
            placement = site.place(job)
            if placement is not None:
                del self._queue[index]
                site.start(job, placement)
                return job
            if not site.reservations:
                self._failed.add(job.kind)
        return None


SCHEDULER = scheduler(
    WindowFirstFit,
    about="First-fit over a window of the queue.",
    options=WindowOptions,
    compiled="simulation.schedulers.compiled.window_first_fit:window_first_fit",
)
