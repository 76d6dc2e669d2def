"""Window first-fit that tells the machine when jobs are expected to end.

The same jobs may start at the same times as with the scheduler `window-first-fit`; only where they are placed can
differ, on machines that make use of the times (the allocator `room-ahead`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulation.machines.interface import JobRequest, Machine, Placement, Reallocation, heeds_ends
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import AdvanceReservation, Job, RunningJob, Site
from simulation.schedulers.policies.window_first_fit import WindowFirstFit, WindowOptions


class WindowRoomAhead(WindowFirstFit):
    """First-fit over a window of the queue, with places chosen by requested times."""

    def decide(self, site: Site) -> int | None:
        """Start jobs that fit within the window."""
        return super().decide(_TimedSite(site) if heeds_ends(site.machine) else site)


class _TimedSite:
    """A site whose places are asked for with the expected ends of all jobs."""

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def now(self) -> int:
        return self._site.now

    @property
    def machine(self) -> Machine:
        return self._site.machine

    @property
    def running(self) -> Mapping[int, RunningJob]:
        return self._site.running

    @property
    def reservations(self) -> Sequence[AdvanceReservation]:
        return self._site.reservations

    def place(self, job: Job) -> Placement | None:
        machine, now = self._site.machine, self._site.now
        if self._site.reservations or not heeds_ends(machine):
            return self._site.place(job)
        ends = {number: running.expected_end(now) for number, running in self._site.running.items()}
        return machine.place_until(job.request, now, now + job.planned_length, ends)

    def start(self, job: Job, placement: Placement) -> None:
        self._site.start(job, placement)

    def resize(self, request: JobRequest) -> Reallocation | None:
        return self._site.resize(request)


SCHEDULER = scheduler(
    WindowRoomAhead,
    about="Window first-fit that tells the machine when jobs are expected to end.",
    options=WindowOptions,
    compiled="simulation.schedulers.compiled.window_first_fit:window_first_fit",
)
