"""A queue grouped by kind of request.

Saturated queues grow to thousands of jobs, but to few kinds: when one job of a kind does not fit, none of that kind
fits until something is released. So a pass over the queue looks at the first job of each kind only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import itemgetter

from simulation.schedulers.interface import Job


class KindQueue:
    """Waiting jobs in order of arrival, in one line for each kind.

    Attributes:
        lines: for each kind the jobs that wait with their numbers of arrival, in order; never empty. Not to be changed.
        arrivals: jobs that have joined so far; the next one gets this number of arrival.
    """

    __slots__ = ("_first", "_size", "arrivals", "lines")

    def __init__(self) -> None:
        self.lines: dict[Hashable, list[tuple[int, Job]]] = {}
        self.arrivals = 0
        self._size = 0
        self._first: tuple[int, Job] | None = None  # who waits longest, where that is known

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Job]:
        everyone = sorted((entry for line in self.lines.values() for entry in line), key=lambda entry: entry[0])
        return (job for _, job in everyone)

    def append(self, job: Job) -> None:
        line = self.lines.get(job.kind)
        if line is None:
            line = self.lines[job.kind] = []
        line.append((self.arrivals, job))
        self.arrivals += 1
        self._size += 1

    def remove(self, job: Job) -> None:
        """Remove a job from any position."""
        index = next(index for index, entry in enumerate(self.lines[job.kind]) if entry[1] is job)
        self.remove_at(job.kind, index)

    def remove_at(self, kind: Hashable, index: int) -> Job:
        """Remove the job at a position of its line."""
        line = self.lines[kind]
        entry = line.pop(index)
        self._size -= 1
        if entry is self._first:
            self._first = None
        if not line:
            del self.lines[kind]
        return entry[1]

    def pop_first(self, kind: Hashable) -> Job:
        """Remove the first job of a kind."""
        return self.remove_at(kind, 0)

    @property
    def first_arrival(self) -> int:
        """Number of arrival of the job that waits longest; -1 if the queue is empty."""
        self.first()
        return self._first[0] if self._first is not None else -1

    def first(self) -> Job | None:
        """Return the job that waits longest."""
        if self._first is None:
            if not self.lines:
                return None
            self._first = min((line[0] for line in self.lines.values()), key=itemgetter(0))
        return self._first[1]
