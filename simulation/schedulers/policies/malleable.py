"""Malleable jobs on any machine: they shrink to make room for the next waiting job, and grow into what is idle.

Starts are another scheduler's, by name. Where the first job of its queue has no room, running jobs shrink: first those
that are larger than they prefer, then down to their minimum, the youngest first, and only as many as it takes; if all
together leave no room, none does. When nobody waits, they grow, those that have least of what they prefer first. On a
machine whose units have places a job grows by whole planes of its box and keeps what it has; its cables come along.
Sizes do not change while something is reserved, for a job that has grown could stand where a reservation will be.

On flat machines that is average stealing and pooling of P. Zojer, J. Posner, T. Oezden, arXiv 2602.17318, 2026, in the
main; how boxes grow and shrink is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from simulation.machines.interface import JobRequest, Machine
from simulation.schedulers.declaration import make_scheduler, scheduler
from simulation.schedulers.interface import Job, RunningJob, Site


@dataclass(frozen=True, slots=True)
class MalleableOptions:
    """Options of the scheduler.

    Attributes:
        starts: name of the scheduler that decides who starts.
        grows: whether jobs also grow beyond the size that they prefer.
    """

    starts: str = "first-fit"
    grows: bool = True


class MalleableJobs:
    """Jobs shrink for the first that waits, and grow when nobody does."""

    def __init__(self, options: MalleableOptions) -> None:
        self._starts = make_scheduler(options.starts)
        self._grows = options.grows
        self._no_room_for: int | None = None  # the head for which shrinking was not enough, until something is released
        self._nothing_grows = False

    def submit(self, job: Job) -> None:
        """A job joins the queue."""
        self._starts.submit(job)

    def released(self) -> None:
        """What did not fit may fit now."""
        self._no_room_for = None
        self._nothing_grows = False
        self._starts.released()

    def waiting(self) -> Iterable[Job]:
        """The queue in its order."""
        return self._starts.waiting()

    def decide(self, site: Site) -> int | None:
        """Start what fits, shrink for the first that does not, and grow where nobody waits."""
        again = self._starts.decide(site)
        if site.reservations:
            return again
        while (head := next(iter(self.waiting()), None)) is not None and self._make_room(site, head):
            again = self._starts.decide(site)
        if head is None and self._grows and not self._nothing_grows:
            self._use_what_is_idle(site)
        return again

    def _make_room(self, site: Site, head: Job) -> bool:
        """Shrink running jobs for a waiting one, if that is enough; it starts with the next decision."""
        if self._no_room_for == head.job_number:
            return False
        tried, steps = site.machine.copy(), list(_ways_to_shrink(site))
        for count, request in enumerate(steps, start=1):
            tried.reallocate(request)
            if tried.free >= head.request.size and tried.place(head.request) is not None:
                for each in steps[:count]:
                    site.resize(each)
                return True
        self._no_room_for = head.job_number
        return False

    def _use_what_is_idle(self, site: Site) -> None:
        """Let running jobs grow, one step each, again and again."""
        grown = True
        while grown and site.machine.free:
            grown = False
            for running in sorted(_resizable(site), key=_share_of_preferred):
                if any(site.resize(request) is not None for request in _ways_to_grow(running, site.machine)):
                    grown = True
        self._nothing_grows = True


def _resizable(site: Site) -> list[RunningJob]:
    return [
        running
        for running in site.running.values()
        if running.job.malleability is not None and running.job.malleability.job_class.changes_while_running
    ]


def _share_of_preferred(running: RunningJob) -> tuple[float, int]:
    return running.placement.size / running.job.request.size, running.job.job_number


def _ways_to_shrink(site: Site) -> Iterator[JobRequest]:
    """Requests of smaller sizes, in the order in which they are tried; each names the whole of what its job keeps."""
    jobs = sorted(_resizable(site), key=lambda running: (-running.start_time, -running.job.job_number))
    for running in jobs:
        if running.placement.size > running.job.request.size:
            yield running.job.request
    for running in jobs:
        malleability = running.job.malleability
        assert malleability is not None, "the others are left out"
        smallest = _smallest(running.job.request, malleability.sizes.least)
        if smallest.size < min(running.placement.size, running.job.request.size):
            yield smallest


def _smallest(request: JobRequest, least: int) -> JobRequest:
    """The request with its box halved, its longest side first, as long as the volume allows."""
    if request.shape is None:
        return replace(request, size=least)
    shape = list(request.shape)
    while True:
        side = max(range(len(shape)), key=shape.__getitem__)
        halved = [*shape[:side], -(-shape[side] // 2), *shape[side + 1 :]]
        if halved == shape or prod(halved) < least:
            return replace(request, size=prod(shape), shape=tuple(shape))
        shape = halved


def _ways_to_grow(running: RunningJob, machine: Machine) -> Iterator[JobRequest]:
    """Requests of the next larger sizes, the smallest step first; none that its job may not have or that cannot fit."""
    job, placement = running.job, running.placement
    malleability = job.malleability
    assert malleability is not None, "the others are left out"
    if not placement.shape:
        size = malleability.sizes.most_of(min(2 * placement.size, placement.size + machine.free))
        if size is not None and size > placement.size:
            yield replace(job.request, size=size)
        return
    sides = sorted(range(len(placement.shape)), key=lambda side: -placement.shape[side])
    for side in sides:  # a plane across the longest side has the fewest units
        plane = prod(placement.shape) // placement.shape[side]
        size = prod(placement.shape) + plane
        if plane > machine.free or not malleability.may_become(size):
            continue
        shape = tuple(extent + (number == side) for number, extent in enumerate(placement.shape))
        if job.request.shape is None:
            yield replace(job.request, size=size)
        else:
            yield replace(
                job.request, size=size, shape=shape, connection=placement.connection or job.request.connection
            )


SCHEDULER = scheduler(
    MalleableJobs,
    about="Malleable jobs shrink for the first that waits, and grow when nobody does.",
    options=MalleableOptions,
)
