"""Start times that an EASY backfilling scheduler gives the jobs of a workload without any.

Source: D. A. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995: jobs start in order of arrival; while the first
waiting job does not fit, later ones start if they do not delay it, judged by requested times. Used to complete
synthetic logs; studies of schedulers are the business of `simulation.schedulers`.
"""

from __future__ import annotations

import heapq
from bisect import insort

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]


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
    """The waiting jobs are a slice of one array, for each change of the machine looks at all of them."""

    def __init__(self, sizes: Int64Array, runs: list[int], requested: Int64Array, cores: int) -> None:
        self.sizes, self.runs, self.requested = sizes.tolist(), runs, requested.tolist()
        self.free = cores
        self.starts = [0] * len(sizes)
        self._of_all = sizes, requested
        self._waiting = np.zeros(len(sizes), dtype=np.int64)
        self._first = self._last = 0
        self._ends: list[tuple[int, int]] = []
        self._limits: list[tuple[int, int]] = []

    def queue(self, job: int) -> None:
        """Let a job wait behind all others."""
        self._waiting[self._last] = job
        self._last += 1

    def run_until(self, moment: int | None) -> None:
        """Let jobs end, and others take their place, up to and including a moment (None = to the end)."""
        while self._ends and (moment is None or self._ends[0][0] <= moment):
            now = self._ends[0][0]
            while self._ends and self._ends[0][0] == now:
                _, job = heapq.heappop(self._ends)
                self.free += self.sizes[job]
                self._limits.remove((self.starts[job] + self.requested[job], job))
            if now != moment:
                self.start_jobs(now)
        if moment is not None:
            self.start_jobs(moment)

    def start_jobs(self, now: int) -> None:
        """Start what may start now."""
        while self._first < self._last and self.sizes[job := int(self._waiting[self._first])] <= self.free:
            self._start(job, now)
            self._first += 1
        if self._last - self._first < 2 or self.free == 0:
            return
        shadow, spare = self._shadow(self.sizes[int(self._waiting[self._first])])
        behind = self._waiting[self._first + 1 : self._last]
        sizes, requested = (of_all[behind] for of_all in self._of_all)
        in_time = now + requested <= shadow
        started = []
        for place in np.flatnonzero((sizes <= self.free) & (in_time | (sizes <= spare))).tolist():
            job = int(behind[place])
            size, ends_in_time = self.sizes[job], bool(in_time[place])
            if size <= self.free and (ends_in_time or size <= spare):  # still, after those before it
                self._start(job, now)
                spare -= 0 if ends_in_time else size
                started.append(place)
        if started:
            self._close_ranks(started)

    def _close_ranks(self, started: list[int]) -> None:
        """Take jobs out of the waiting ones, by their places behind the first, which stays the first."""
        first = self._waiting[self._first]
        kept = np.delete(self._waiting[self._first + 1 : self._last], started)
        self._first += len(started)
        self._waiting[self._first] = first
        self._waiting[self._first + 1 : self._last] = kept

    def _start(self, job: int, now: int) -> None:
        self.starts[job] = now
        self.free -= self.sizes[job]
        heapq.heappush(self._ends, (now + self.runs[job], job))
        insort(self._limits, (now + self.requested[job], job))

    def _shadow(self, size: int) -> tuple[int, int]:
        """When `size` cores will be free by the running jobs' limits, and how many more will be free then."""
        available = self.free
        for limit, job in self._limits:
            available += self.sizes[job]
            if available >= size:
                return limit, available - size
        raise AssertionError(f"{size} cores are more than the machine has")
