"""Start times that an EASY backfilling scheduler gives the jobs of a workload without any.

Source: D. A. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995: jobs start in order of arrival; while the first
waiting job does not fit, later ones start if they do not delay it, judged by requested times. Used to complete
synthetic logs; studies of schedulers are the business of `simulation.schedulers`.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque

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
    machine = _EasyMachine(sizes.tolist(), runs.tolist(), requested.tolist(), machine_cores)
    arrivals = submitted.tolist()
    for job, moment in enumerate(arrivals):
        machine.run_until(moment)
        machine.waiting.append(job)
        if job + 1 == len(arrivals) or arrivals[job + 1] != moment:
            machine.start_jobs(moment)
    machine.run_until(None)
    return np.array(machine.starts, dtype=np.int64)


class _EasyMachine:
    def __init__(self, sizes: list[int], runs: list[int], requested: list[int], cores: int) -> None:
        self.sizes, self.runs, self.requested = sizes, runs, requested
        self.free = cores
        self.waiting: deque[int] = deque()
        self.starts = [0] * len(sizes)
        self._ends: list[tuple[int, int]] = []
        self._limits: list[tuple[int, int]] = []

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
        waiting = self.waiting
        while waiting and self.sizes[waiting[0]] <= self.free:
            self._start(waiting.popleft(), now)
        if len(waiting) < 2 or self.free == 0:
            return
        shadow, spare = self._shadow(self.sizes[waiting[0]])
        kept = deque([waiting.popleft()])
        for job in waiting:
            size = self.sizes[job]
            ends_in_time = now + self.requested[job] <= shadow
            if size <= self.free and (ends_in_time or size <= spare):
                self._start(job, now)
                spare -= 0 if ends_in_time else size
            else:
                kept.append(job)
        self.waiting = kept

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
