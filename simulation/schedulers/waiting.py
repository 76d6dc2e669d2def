"""A queue grouped by kind of request.

Saturated queues grow to thousands of jobs, but to few kinds: when one job of a kind does not fit, none of that kind
fits until something is released. So a pass over the queue looks at the first job of each kind only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from simulation.schedulers.interface import Job


class KindQueue:
    """Waiting jobs in order of arrival, in one line for each kind.

    Attributes:
        lines: for each kind the jobs that wait with their numbers of arrival, in order; never empty. Not to be changed.
        failed: kinds known not to fit until the next release.
        arrivals: jobs that have joined so far; the next one gets this number of arrival.
    """

    __slots__ = ("_size", "arrivals", "failed", "lines")

    def __init__(self) -> None:
        self.lines: dict[Hashable, list[tuple[int, Job]]] = {}
        self.arrivals = 0
        self._size = 0
        self.failed: set[Hashable] = set()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Job]:
        everyone = sorted((entry for line in self.lines.values() for entry in line), key=lambda entry: entry[0])
        return (job for _, job in everyone)

    def append(self, job: Job) -> None:
        """A job joins at the end."""
        line = self.lines.get(job.kind)
        if line is None:
            line = self.lines[job.kind] = []
        line.append((self.arrivals, job))
        self.arrivals += 1
        self._size += 1

    def remove(self, job: Job) -> None:
        """Take a job out wherever it stands."""
        index = next(index for index, entry in enumerate(self.lines[job.kind]) if entry[1] is job)
        self.remove_at(job.kind, index)

    def remove_at(self, kind: Hashable, index: int) -> Job:
        """Take out the job at a place of its line."""
        line = self.lines[kind]
        job = line.pop(index)[1]
        self._size -= 1
        if not line:
            del self.lines[kind]
        return job

    def pop_first(self, kind: Hashable) -> Job:
        """Take out the first job of a kind."""
        return self.remove_at(kind, 0)

    @property
    def first_arrival(self) -> int:
        """Number of arrival of the job that waits longest; -1 when nobody waits."""
        return min((line[0][0] for line in self.lines.values()), default=-1)

    def first(self) -> Job | None:
        """The job that waits longest."""
        return min(self.lines.values(), key=lambda line: line[0][0])[0][1] if self.lines else None

    def candidates(self, free: int) -> list[Job]:
        """First jobs of the kinds not known to fail that ask for at most `free` units, in order of arrival."""
        failed = self.failed
        heads = [line[0] for kind, line in self.lines.items() if kind not in failed]
        heads.sort(key=lambda entry: entry[0])
        return [job for _, job in heads if job.request.size <= free]
