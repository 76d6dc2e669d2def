"""A torus machine that lives: its own users' jobs run through a scheduler, around what the market has reserved.

Precedence, where jobs and reservations meet:

- A reservation is granted only where no running job (until its requested time), and no other hold or reservation, holds
  any of its units or cables. Waiting jobs do not stand in its way, but the plan of them does when a slot is looked for.
- A granted reservation is kept: the scheduler starts no job whose requested time touches it.
- Jobs that may change their size (`malleable_share` of the plug-in `modelled`, under the scheduler `malleable`) shrink
  for those that wait and grow into what is idle, but never onto what is reserved, however long they run on at their new
  size. What they have grown beyond the size that they prefer is for sale: they give it back when it is set aside.
- A job that outruns its request is ended at the request (`cut`), or runs on (`keep`) until it ends or until a
  reservation begins that needs one of its units or cables: then it is ended, and the reservation begins on time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import is_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.model.instant import MINUTE
from simulation.machines.interface import GridMachine, Placement
from simulation.planning.placers import ALWAYS, placer_of
from simulation.planning.space_time import Floors, SpaceTime
from simulation.queueing.queue_simulation import EndedJob, Overrun, QueueSimulation
from simulation.resource.background import Submission
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import AdvanceReservation, Job, RunningJob, Scheduler, SizeChanges
from simulation.schedulers.planner import placements_conflict
from simulation.schedulers.size_changes import given_back

SCHEDULER_DEFAULT: Final = "easy"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What will be taken when, as far as is known now.

    Attributes:
        space_time: running jobs until their expected ends, reservations, waiting jobs as planned.
        jobs: the queue in its order.
        begins: of each waiting job as planned, microseconds; -1 where nothing that is known lets it start.
        good_until: the first time at which something expected here must have happened, microseconds.
        holders: the running jobs, each with its changes of size, and the numbers of the reservations that it knows of.
        floors: what the planning of the queue has shown to be too early.
    """

    space_time: SpaceTime
    jobs: tuple[Job, ...]
    begins: NDArray[np.int64]
    good_until: int
    holders: frozenset[int | tuple[int, SizeChanges | None]]
    floors: Floors


class LiveMachine:
    """One machine, its own users' jobs, and what the market has reserved.

    Args:
        machine: the machine, idle.
        submissions: its users' jobs in order of time; taken as time passes.
        scheduler: with an empty queue; `SCHEDULER_DEFAULT` by default.
        overrun: what happens to jobs that outrun their request.

    Attributes:
        users: owner of each job that waits or runs, None where unknown.
        on_end: called with every job that ends.
    """

    def __init__(
        self,
        machine: GridMachine,
        submissions: Iterable[Submission],
        *,
        scheduler: Scheduler | None = None,
        overrun: Overrun = Overrun.CUT,
    ) -> None:
        self.machine = machine
        self.users: dict[int, int | None] = {}
        self.on_end: Callable[[EndedJob], None] | None = None
        scheduler = scheduler or make_scheduler(SCHEDULER_DEFAULT)
        self._queue = QueueSimulation(machine, scheduler, overrun=overrun, on_end=self._ended)
        self._submissions: Iterator[Submission] = iter(submissions)
        self._next: Submission | None = next(self._submissions, None)
        self._placer = placer_of(machine)
        self._outlook: tuple[int, Outlook] | None = None

    @property
    def now(self) -> int:
        """Machine time, microseconds."""
        return self._queue.now

    @property
    def queue(self) -> QueueSimulation:
        """The queue: running and waiting jobs, reservations."""
        return self._queue

    def advance(self, until: int) -> None:
        """Let everything happen up to and including a time; an earlier one than now changes nothing."""
        while self._next is not None and self._next.job.submit_time <= until:
            submission = self._next
            self.users[submission.job.job_number] = submission.user
            self._queue.submit(submission.job)
            self._next = next(self._submissions, None)
        self._queue.advance(until)

    def why_taken(self, placement: Placement, begin: int, end: int, but: int | None = None) -> str:
        """Return what stands in the way of a reservation of [begin, end), begin not before now; empty if nothing does.

        Args:
            placement: what is wanted.
            begin: machine time.
            end: machine time.
            but: number of a reservation that stands in nobody's way.
        """
        for number, running in self._running().items():
            if running.expected_end(self.now) > begin and placements_conflict(running.placement, placement):
                return f"job {number} is running there"
        for reservation in self._queue.reservations:
            overlaps = reservation.begin_time < end and begin < reservation.end_time
            if overlaps and reservation.number != but and placements_conflict(reservation.placement, placement):
                return "another reservation occupies it"
        return ""

    def _running(self) -> dict[int, RunningJob]:
        """Return the running jobs, those that have grown without what they give back when it is sold."""
        queue = self._queue
        return {**queue.running, **given_back(self.machine, queue.running, queue.reservations, self.now)}

    def reserve(self, placement: Placement, begin: int, end: int) -> int:
        """Set a placement aside for [begin, end), which nothing stands in the way of; returns the number."""
        begin = max(begin, self.now)
        self._make_room(placement, begin)
        return self._set_aside(placement, begin, end)

    def exchange(self, number: int, placement: Placement, begin: int, end: int) -> int:
        """Give a reservation another place and time, which nothing else stands in the way of; returns its new number.

        What it keeps is never free in between, neither for jobs that wait nor for those that give something back.
        """
        begin = max(begin, self.now)
        self._make_room(placement, begin)
        self._queue.cancel_reservation(number)
        return self._set_aside(placement, begin, end)

    def _make_room(self, placement: Placement, begin: int) -> None:
        """Let jobs give back what they have grown by, where it is wanted from a time on."""
        for number in given_back(self.machine, self._queue.running, self._queue.reservations, self.now):
            running = self._queue.running[number]
            if running.expected_end(self.now) > begin and placements_conflict(running.placement, placement):
                self._queue.resize(running.job.request)

    def _set_aside(self, placement: Placement, begin: int, end: int) -> int:
        number = self._queue.reserve_place(placement, begin, max(end, begin + 1)).number
        self._queue.advance(self.now)  # what begins now begins at once
        return number

    def cancel(self, number: int) -> None:
        """Give a reservation back; one that is over is no error."""
        self._queue.cancel_reservation(number)
        self._queue.advance(self.now)  # what was kept waiting by it starts at once

    def reservations(self) -> dict[int, AdvanceReservation]:
        """Return reservations whose end has not come, by number."""
        return {reservation.number: reservation for reservation in self._queue.reservations}

    def outlook(self) -> Outlook:
        """Return what will be taken when.

        Waiting jobs are planned in the order of the queue, each at the earliest begin that delays none before it
        (conservative backfilling), around everything that runs or is reserved.
        """
        if self._outlook is not None:
            changes, outlook = self._outlook
            if self.now < outlook.good_until:
                if changes == self._queue.changes:
                    return outlook
                if self._has_only_grown(outlook):
                    return self._keep(self._plan(outlook, self._queue.waiting[len(outlook.jobs) :]))
        return self._keep(self._plan(self._without_queue(), self._queue.waiting))

    def _keep(self, outlook: Outlook) -> Outlook:
        self._outlook = (self._queue.changes, outlook)
        return outlook

    def _holders(self) -> frozenset[int | tuple[int, SizeChanges | None]]:
        running = ((number, job.changes) for number, job in self._queue.running.items())
        return frozenset((*running, *(each.number for each in self._queue.reservations)))

    def _has_only_grown(self, outlook: Outlook) -> bool:
        """Return whether the only events were submissions, so that new jobs are behind those planned already."""
        waiting = self._queue.waiting
        known = outlook.jobs
        return len(waiting) >= len(known) and all(map(is_, known, waiting)) and outlook.holders == self._holders()

    def _without_queue(self) -> Outlook:
        """Return the outlook of running jobs and reservations, without waiting jobs."""
        now, queue = self.now, self._queue
        running = [(now, each.expected_end(now), each.placement) for each in self._running().values()]
        reserved = [(each.begin_time, each.end_time, each.placement) for each in queue.reservations]
        space_time = SpaceTime(self._placer, now)
        space_time.book_all([*running, *reserved])
        good_until = min((each.expected_end(now) for each in queue.running.values()), default=ALWAYS)
        return Outlook(space_time, (), np.empty(0, np.int64), good_until, self._holders(), Floors())

    def _plan(self, outlook: Outlook, jobs: tuple[Job, ...]) -> Outlook:
        """Return the outlook with further waiting jobs planned, in its own space and time."""
        space_time, floors = outlook.space_time, outlook.floors
        begins = space_time.plan([job.request for job in jobs], [job.planned_length for job in jobs], floors)
        # a job that could start now, but that its scheduler has not started, is looked at again soon
        awaited = np.where(begins > self.now, begins, self.now + MINUTE)[begins >= 0]
        good_until = int(awaited.min(initial=outlook.good_until))
        begins = np.concatenate([outlook.begins, begins])
        return Outlook(space_time, outlook.jobs + jobs, begins, good_until, outlook.holders, floors)

    def _ended(self, ended: EndedJob) -> None:
        self.users.pop(ended.job.job_number, None)
        if self.on_end is not None:
            self.on_end(ended)
