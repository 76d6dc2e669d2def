"""Conservative backfilling on requested times.

Mu'alem and Feitelson 2001, section 3: every job is promised the earliest start that delays nobody in the queue when it
arrives. When something is released early, the waiting jobs are moved forward one by one in order of arrival and never
back ("compression"). When a running job outruns its request, or reservations change, the promises are made anew in
order of arrival.

A promise is the earliest start among all that was booked when it was made. Since only what is given back can make an
earlier one possible, compression looks at just those starts whose run would touch a time that has been given back
since: by a job that ended early, or by a promise that moved forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from simulation.machines.interface import Placement, units_out
from simulation.planning.plan import Plan
from simulation.planning.space_time import Floors
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.planner import expected_ends, plan_of

Promise = tuple[int, Placement]


@dataclass(slots=True)
class _GivenBack:
    """A stretch of time that holds all that was given back; empty where it ends before it begins."""

    begin: int = 1
    end: int = 0

    def add(self, begin: int, end: int) -> None:
        if begin < end:
            self.begin, self.end = (min(self.begin, begin), max(self.end, end)) if self else (begin, end)

    def __bool__(self) -> bool:
        return self.begin < self.end


class ConservativeBackfill:
    """Backfill jobs that delay no job in the queue."""

    def __init__(self) -> None:
        self._queue: dict[int, Job] = {}
        self._promises: dict[int, Promise] = {}
        self._compress = False
        self._given_back = _GivenBack()
        self._reservations: dict[int, tuple[int, int]] = {}
        self._expected_ends: dict[int, int] = {}
        self._out = 0

    def submit(self, job: Job) -> None:
        """Add a job at the end; the next decision promises it a start."""
        self._queue[job.job_number] = job

    def released(self) -> None:
        """Let promises move forward."""
        self._compress = True

    def waiting(self) -> Iterable[Job]:
        return iter(self._queue.values())

    def promise(self, job: Job) -> Promise | None:
        """Return the start time (microseconds) and placement promised to a waiting job, if any."""
        return self._promises.get(job.job_number)

    def decide(self, site: Site) -> int | None:
        """Make promises, move them forward and start the jobs promised for now."""
        now = site.now
        self._see_what_changed(site)
        if self._queue:
            queue = self._queue
            promised = [
                (number, begin, begin + queue[number].planned_length, placement)
                for number, (begin, placement) in self._promises.items()
            ]
            self._promise(plan_of(site, promised), now)
        self._compress = False
        for number in [number for number, (begin, _) in self._promises.items() if begin <= now]:
            site.start(self._queue.pop(number), self._promises.pop(number)[1])
        self._expected_ends = expected_ends(site)
        return min((begin for begin, _ in self._promises.values()), default=None)

    def _promise(self, plan: Plan, now: int) -> None:
        given_back, moved, floors = self._given_back, _GivenBack(), Floors()
        for number, job in self._queue.items():
            old = self._promises.get(number)
            length = job.planned_length
            if old is None:
                new = plan.earliest(job.request, length, floors.floor(job.kind, length, now))
            elif self._compress:
                not_before = max(floors.floor(job.kind, length, now, old[0]), given_back.begin - length + 1)
                latest = min(old[0], given_back.end) - 1
                if not given_back or not_before > latest:
                    continue
                plan.cancel(number)
                new = plan.earliest(job.request, length, not_before, latest)
                if new is None:
                    plan.book(number, old[0], old[0] + length, old[1])
                    floors.note(job.kind, length, latest + 1)
                    continue
                for stretch in (given_back, moved):
                    stretch.add(old[0], old[0] + length)
                floors.clear()
            else:
                continue
            if new is not None:
                self._promises[number] = new
                plan.book(number, new[0], new[0] + length, new[1])
                floors.note(job.kind, length, new[0])
        if self._compress:
            self._given_back = moved  # those before a job that moved forward look at what it left the next time

    def _see_what_changed(self, site: Site) -> None:
        now, ends, machine = site.now, expected_ends(site), site.machine
        out = 0 if machine.traits.interchangeable else units_out(machine)
        for number, end in self._expected_ends.items():
            if number not in ends:
                self._given_back.add(now, end)
        reservations = {each.number: (each.begin_time, each.end_time) for each in site.reservations}
        for number, (begin, end) in self._reservations.items():
            if number not in reservations:
                self._given_back.add(max(begin, now), end)
        # beyond its request, a job is expected to end as the next reservation begins, and later if that is given back
        overrun = any(ends.get(number, end) > end for number, end in self._expected_ends.items())
        if overrun or not reservations.keys() <= self._reservations.keys() or out != self._out:
            self._promises.clear()
        self._reservations, self._out = reservations, out


SCHEDULER = scheduler(
    ConservativeBackfill,
    about="Later jobs may overtake if they delay no earlier job.",
    compiled="simulation.schedulers.compiled.conservative:conservative",
)
