"""A queue grouped by kind of request.

Saturated queues grow to thousands of jobs, but to few kinds: when one job of a kind does not fit, none of that kind
fits until something is released. So a pass over the queue looks at the first job of each kind only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from simulation.compiling import compiled
from simulation.schedulers.interface import Job

_FIRST_ROOM = 8


@compiled
def _next_place(lengths: NDArray[np.int64], index: int, count: int, room: int, longer: bool) -> int:
    """Return the first place in [index, count) whose length is above `room` (or is not), else `count`."""
    while index < count and (lengths[index] > room) != longer:
        index += 1
    return index


class _Lengths:
    """The planned lengths of a line, in its order, and their bounds, at which most searches end."""

    __slots__ = ("_count", "_longest", "_shortest", "_values")

    def __init__(self) -> None:
        self._values: NDArray[np.int64] = np.empty(_FIRST_ROOM, np.int64)
        self._count = 0
        self._shortest = self._longest = 0

    def append(self, length: int) -> None:
        if self._count == len(self._values):
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        self._shortest = min(self._shortest, length) if self._count else length
        self._longest = max(self._longest, length)
        self._values[self._count] = length
        self._count += 1

    def remove_at(self, index: int) -> None:
        length = self._values[index]
        self._count -= 1
        left = self._values[: self._count]
        left[index:] = self._values[index + 1 : self._count + 1]
        if length == self._shortest:
            self._shortest = int(left.min())
        if length == self._longest:
            self._longest = int(left.max())

    def next(self, index: int, room: int, longer: bool) -> int | None:
        """Return the first place from `index` on whose length is above `room`, or is not."""
        if self._longest <= room if longer else self._shortest > room:
            return None
        place = _next_place(self._values, index, self._count, room, longer)
        return place if place < self._count else None


class KindQueue:
    """Waiting jobs in order of arrival, in one line for each kind.

    Attributes:
        lines: for each kind the jobs that wait with their numbers of arrival, in order; never empty. Not to be changed.
        arrivals: jobs that have joined so far; the next one gets this number of arrival.
    """

    __slots__ = ("_first", "_lengths", "_size", "arrivals", "lines")

    def __init__(self) -> None:
        self.lines: dict[Hashable, list[tuple[int, Job]]] = {}
        self._lengths: dict[Hashable, _Lengths] = {}
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
            self._lengths[job.kind] = _Lengths()
        line.append((self.arrivals, job))
        self._lengths[job.kind].append(job.planned_length)
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
        if line:
            self._lengths[kind].remove_at(index)
        else:
            del self.lines[kind], self._lengths[kind]
        return entry[1]

    def pop_first(self, kind: Hashable) -> Job:
        """Remove the first job of a kind."""
        return self.remove_at(kind, 0)

    def index_of(self, kind: Hashable, arrival: int) -> int:
        """Return the position in its line of the first job from an arrival on."""
        return bisect_left(self.lines[kind], arrival, key=itemgetter(0))

    def next_by_length(self, kind: Hashable, index: int, room: int, longer: bool) -> tuple[int, bool, Job] | None:
        """Return a kind's first job, from a position in its line on, that is longer than `room`, or is not.

        Returns:
            Number of arrival, whether it is longer, and the job.
        """
        line = self.lines.get(kind)
        if line is None:
            return None
        place = self._lengths[kind].next(index, room, longer)
        return None if place is None else (line[place][0], longer, line[place][1])

    def firsts_by_length(self, first: int, room: int, free: int) -> list[tuple[int, bool, Job]]:
        """Return each kind's first job that is no longer than `room`, and the first that is longer.

        Args:
            first: number of arrival of the first job that is looked at.
            room: microseconds.
            free: jobs that ask for more units are left out.

        Returns:
            Number of arrival, whether it is longer, and the job; in order of arrival.
        """
        found = []
        for kind, line in self.lines.items():
            if line[-1][0] < first or line[0][1].request.size > free:
                continue
            index = 0 if line[0][0] >= first else self.index_of(kind, first)
            lengths = self._lengths[kind]
            arrival, job = line[index]
            longer = job.planned_length > room
            found.append((arrival, longer, job))
            place = lengths.next(index + 1, room, not longer)
            if place is not None:
                arrival, job = line[place]
                found.append((arrival, not longer, job))
        found.sort(key=itemgetter(0))
        return found

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
