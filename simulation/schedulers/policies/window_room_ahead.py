"""Window first-fit that tells the machine when jobs are expected to end.

The same jobs may start at the same times as with the scheduler `window-first-fit`; only where they are placed can
differ, on machines that make use of the times (the allocator `room-ahead`).
"""

from __future__ import annotations

from simulation.machines.interface import Placement, heeds_ends
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.policies.window_first_fit import WindowFirstFit, WindowOptions


class WindowRoomAhead(WindowFirstFit):
    """First-fit over a window of the queue, with places chosen by requested times."""

    def _place(self, site: Site, job: Job) -> Placement | None:
        machine, now = site.machine, site.now
        if site.reservations or not heeds_ends(machine):
            return site.place(job)
        ends = {number: running.expected_end(now) for number, running in site.running.items()}
        return machine.place_until(job.request, now, now + job.planned_length, ends)


SCHEDULER = scheduler(
    WindowRoomAhead,
    about="Window first-fit that tells the machine when jobs are expected to end.",
    options=WindowOptions,
    compiled="simulation.schedulers.compiled.window_first_fit:window_first_fit",
)
