"""Malleable jobs on any machine: they shrink to make room for the next waiting job, and grow into what is idle.

Starts are another scheduler's, by name. Where the first job of its queue has no room, running jobs shrink: first those
that are larger than they prefer, then down to their minimum, the youngest first, and only as many as it takes; if all
together leave no room, none does. When nobody waits, they grow, those that have least of what they prefer first. On a
machine whose units have places a job grows by whole planes of its box and keeps what it has; its cables come along.

Jobs and reservations share one plan: a job gets another size only where what it holds then, until its request is over
at its new speed, touches nothing that is reserved, and shrinks for a waiting job only where that can start beside all
that is. On a machine whose units have no places, sizes do not change while something is reserved.

On flat machines that is average stealing and pooling of P. Zojer, J. Posner, T. Oezden, arXiv 2602.17318, 2026, in the
main; how boxes grow and shrink is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from simulation.machines.interface import JobRequest, Machine, has_places
from simulation.planning.plan import Plan
from simulation.schedulers.declaration import make_scheduler, scheduler
from simulation.schedulers.interface import Job, RunningJob, Site
from simulation.schedulers.size_changes import changed, stays_clear


@dataclass(frozen=True, slots=True)
class MalleableOptions:
    """Options of the scheduler.

    Attributes:
        starts: name of the scheduler that decides which jobs start.
        grows: whether jobs may grow beyond their preferred size.
    """

    starts: str = "first-fit"
    grows: bool = True


class MalleableJobs:
    """Shrink jobs for the first waiting job and grow them when the queue is empty."""

    def __init__(self, options: MalleableOptions) -> None:
        self._starts = make_scheduler(options.starts)
        self._grows = options.grows
        self._no_room_for: int | None = None  # the head for which shrinking was not enough, until something is released
        self._nothing_grows = False

    def submit(self, job: Job) -> None:
        self._starts.submit(job)

    def released(self) -> None:
        """Note that more jobs may fit now."""
        self._no_room_for = None
        self._nothing_grows = False
        self._starts.released()

    def waiting(self) -> Iterable[Job]:
        return self._starts.waiting()

    def decide(self, site: Site) -> int | None:
        """Start jobs that fit, shrink others for the first that does not, and grow if the queue is empty."""
        again = self._starts.decide(site)
        if site.reservations and not has_places(site.machine):
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
        steps = _steps_for(site, head) if not site.reservations else _steps_beside_reservations(site, head)
        for each in steps:
            site.resize(each)
        if not steps:
            self._no_room_for = head.job_number
        return bool(steps)

    def _use_what_is_idle(self, site: Site) -> None:
        grown = True
        while grown and site.machine.free:
            grown = False
            for running in sorted(_resizable(site), key=_share_of_preferred):
                ways = _ways_to_grow(running, site.machine)
                if any(_stays_clear(site, running, request) and site.resize(request) is not None for request in ways):
                    grown = True
        self._nothing_grows = True


def _steps_for(site: Site, head: Job) -> list[JobRequest]:
    """Return the changes that make room for a waiting job where nothing is reserved; empty where all do not suffice."""
    tried, steps = site.machine.copy(), list(_ways_to_shrink(site))
    for count, request in enumerate(steps, start=1):
        tried.reallocate(request)
        if tried.free >= head.request.size and tried.place(head.request) is not None:
            return steps[:count]
    return []


def _steps_beside_reservations(site: Site, head: Job) -> list[JobRequest]:
    """Return changes that touch no reservation, until the job can start beside what is reserved."""
    machine, running, steps = site.machine.copy(), dict(site.running), list[JobRequest]()
    for request in _ways_to_shrink(site):
        tried = machine.copy()
        job = _resized(tried, running[request.job_id], request, site.now)
        if job is None or not stays_clear(job, site.reservations, site.now):
            continue
        machine = tried
        running[request.job_id] = job
        steps.append(request)
        if machine.free >= head.request.size and _can_start(site, machine, running.values(), head):
            return steps
    return []


def _can_start(site: Site, machine: Machine, running: Iterable[RunningJob], head: Job) -> bool:
    """Return whether a job could start now and run for its requested time beside running jobs and reservations."""
    runs = [(each.job.job_number, site.now, each.expected_end(site.now), each.placement) for each in running]
    reserved = [(each.number, each.begin_time, each.end_time, each.placement) for each in site.reservations]
    plan = Plan(machine, site.now, [*runs, *reserved])
    return plan.fits_at(head.request, site.now, head.planned_length) is not None


def _stays_clear(site: Site, running: RunningJob, request: JobRequest) -> bool:
    """Return whether a job with that size could continue beside all reservations."""
    if not site.reservations:
        return True
    job = _resized(site.machine.copy(), running, request, site.now)
    return job is not None and stays_clear(job, site.reservations, site.now)


def _resized(machine: Machine, running: RunningJob, request: JobRequest, now: int) -> RunningJob | None:
    malleability, change = running.job.malleability, machine.reallocate(request)
    assert malleability is not None, "the others are left out"
    return None if change is None else changed(running, change, malleability, now)


def _resizable(site: Site) -> list[RunningJob]:
    return [running for running in site.running.values() if running.job.malleability is not None]


def _share_of_preferred(running: RunningJob) -> tuple[float, int]:
    return running.placement.size / running.job.request.size, running.job.job_number


def _ways_to_shrink(site: Site) -> Iterator[JobRequest]:
    """Return requests of smaller sizes, in the order of trying; each names the whole of what its job keeps."""
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
    """Return the request with its box halved, its longest side first, as long as the volume allows."""
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
    """Return requests of the next larger sizes that a job may have and that can fit, the smallest step first."""
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
        if plane > machine.free or size not in malleability.sizes:
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
    about="Malleable jobs shrink for the first waiting job and grow when the queue is empty.",
    options=MalleableOptions,
)
