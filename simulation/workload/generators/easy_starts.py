"""Start times that an EASY backfilling scheduler gives the jobs of a workload without any.

Source: D. A. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995: jobs start in order of arrival; while the first
waiting job does not fit, later ones start if they do not delay it, judged by requested times. Used to complete
synthetic logs; studies of schedulers are the business of `simulation.schedulers`.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

MANY = 64
"""Number of waiting jobs from which on it is quicker to look at all of them at once."""


def easy_starts(
    submitted: Int64Array, sizes: Int64Array, runs: Int64Array, requested: Int64Array, machine_cores: int
) -> Int64Array:
    """Schedule jobs on a machine where any free cores will do.

    Args:
        submitted: shape (jobs,), seconds, ascending.
        sizes: shape (jobs,), cores, 1 to `machine_cores`.
        runs: shape (jobs,), seconds, positive.
        requested: shape (jobs,), seconds, at least the run time.
        machine_cores: cores of the machine.

    Returns:
        Shape (jobs,), starts in seconds.
    """
    machine = _EasyMachine(sizes, runs.tolist(), requested, machine_cores)
    arrivals = submitted.tolist()
    for job, moment in enumerate(arrivals):
        machine.run_until(moment)
        machine.queue(job)
        if job + 1 == len(arrivals) or arrivals[job + 1] != moment:
            machine.start_jobs(moment)
    machine.run_until(None)
    return np.array(machine.starts, dtype=np.int64)


class _EasyMachine:
    """The waiting jobs are those of `_waiting` from `_first` until `_last`; those before `_seen` need no second look.

    While no job ends and none starts, what did not fit behind the first fits later still less.
    """

    def __init__(self, sizes: Int64Array, runs: list[int], requested: Int64Array, cores: int) -> None:
        self.sizes, self.runs, self.requested = sizes.tolist(), runs, requested.tolist()
        self.free = cores
        self.starts = [0] * len(sizes)
        self._of_all = sizes, requested
        self._waiting = np.zeros(len(sizes), dtype=np.int64)
        self._first = self._last = self._seen = 0
        self._ends: list[tuple[int, int]] = []
        self._limits: list[tuple[int, int]] = []

    def queue(self, job: int) -> None:
        self._waiting[self._last] = job
        self._last += 1

    def run_until(self, moment: int | None) -> None:
        while self._ends and (moment is None or self._ends[0][0] <= moment):
            now = self._ends[0][0]
            while self._ends and self._ends[0][0] == now:
                _, job = heapq.heappop(self._ends)
                self.free += self.sizes[job]
                self._seen = 0
                self._limits.remove((self.starts[job] + self.requested[job], job))
            if now != moment:
                self.start_jobs(now)
        if moment is not None:
            self.start_jobs(moment)

    def start_jobs(self, now: int) -> None:
        while self._first < self._last and self.sizes[job := int(self._waiting[self._first])] <= self.free:
            self._start(job, now)
            self._first += 1
        if self._last - self._first < 2 or self.free == 0:
            return
        unseen = max(self._seen, self._first + 1)
        self._seen = self._last
        if unseen == self._last:
            return
        shadow, spare = self._shadow(self.sizes[int(self._waiting[self._first])])
        started = []
        for place, job in self._promising(unseen, shadow - now, spare):
            size = self.sizes[job]
            ends_in_time = now + self.requested[job] <= shadow
            if size <= self.free and (ends_in_time or size <= spare):
                self._start(job, now)
                spare -= 0 if ends_in_time else size
                started.append(place)
        for place in started:  # who is before it moves up
            self._waiting[self._first + 1 : place + 1] = self._waiting[self._first : place]
            self._first += 1

    def _promising(self, unseen: int, left: int, spare: int) -> Iterable[tuple[int, int]]:
        """Return waiting jobs with their places that might start behind the first, before any other of them does.

        Args:
            unseen: the first place to look at.
            left: seconds until the first of all is to start.
            spare: cores that are free then, beside its own.
        """
        jobs = self._waiting[unseen : self._last]
        if len(jobs) < MANY:
            return enumerate(jobs.tolist(), unseen)
        sizes, requested = (of_all[jobs] for of_all in self._of_all)
        places = np.flatnonzero((sizes <= self.free) & ((requested <= left) | (sizes <= spare)))
        return zip((places + unseen).tolist(), jobs[places].tolist(), strict=True)

    def _start(self, job: int, now: int) -> None:
        self.starts[job] = now
        self.free -= self.sizes[job]
        self._seen = 0
        heapq.heappush(self._ends, (now + self.runs[job], job))
        insort(self._limits, (now + self.requested[job], job))

    def _shadow(self, size: int) -> tuple[int, int]:
        """Return when `size` cores will be free by the running jobs' limits, and how many more will be free then.

        Of several jobs with one limit only as many count as it takes.
        """
        available = self.free
        for limit, job in self._limits:
            available += self.sizes[job]
            if available >= size:
                return limit, available - size
        raise AssertionError(f"{size} cores exceed the machine's cores")
