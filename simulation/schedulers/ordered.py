"""An order of the queue before one rule of starting; the schedulers that differ only in their order share it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from simulation.machines.interface import Placement
from simulation.schedulers.interface import Job, Site


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """Options of the schedulers with an order of their own.

    Attributes:
        starts: jobs that may start: only the first of the order (the others wait for it, as with `fcfs`), or every job
            that fits.
    """

    starts: Literal["head", "first-fit"] = "head"


HEAD_ONLY: Final = OrderOptions()
"""Without options: only the first of the order may start."""


class OrderedQueue:
    """Starts waiting jobs in an order: by the rank of their account, then by their own key, then by arrival.

    Saturated queues have thousands of jobs but few kinds: when one job does not fit, none of its kind fits until
    something is released. So a pass over the queue looks at the first job of each account and kind only.

    Args:
        options: which jobs of the order may start.

    Attributes:
        ranks: rank of each account, lowest first, 0 of the others; may change from one decision to the next.
    """

    def __init__(self, options: OrderOptions = HEAD_ONLY) -> None:
        self._head_only = options.starts == "head"
        self.ranks: dict[Hashable, float] = {}
        self._lines: dict[tuple[Hashable, Hashable], list[tuple[float, int, Job]]] = {}
        self._arrivals = 0
        self._failed: set[Hashable] = set()  # kinds known not to fit until the next release

    def key(self, job: Job) -> float:
        """Return the place of a job in the order, lowest first; it never changes. By default all are equal."""
        return 0

    def account(self, job: Job) -> Hashable:
        """Return what the job counts for in an order among accounts; by default there is one account."""
        return None

    def submit(self, job: Job) -> None:
        insort(self._lines.setdefault((self.account(job), job.kind), []), (self.key(job), self._arrivals, job))
        self._arrivals += 1

    def released(self) -> None:
        self._failed.clear()

    def withdraw(self, job: Job) -> None:
        """Remove a waiting job."""
        key = (self.account(job), job.kind)
        line = self._lines[key]
        line.pop(next(place for place, entry in enumerate(line) if entry[2] is job))
        if not line:
            del self._lines[key]

    def waiting(self) -> Iterable[Job]:
        entries = sorted((self.ranks.get(key[0], 0), *entry) for key, line in self._lines.items() for entry in line)
        return iter([job for *_, job in entries])

    def decide(self, site: Site) -> int | None:
        """Start jobs in the order as the rule says."""
        if site.reservations:
            self._decide_one_by_one(site)
            return None
        while (found := self._next_start(site)) is not None:
            self.withdraw(found[0])
            site.start(*found)
        return None

    def _next_start(self, site: Site) -> tuple[Job, Placement] | None:
        ranks, failed, head_only = self.ranks, self._failed, self._head_only
        firsts = [
            (ranks.get(account, 0), *line[0])
            for (account, kind), line in self._lines.items()
            if head_only or kind not in failed
        ]
        firsts = [min(firsts)] if head_only and firsts else sorted(firsts)
        free = site.machine.free
        jobs = [job for *_, job in firsts if job.request.size <= free and job.kind not in failed]
        if not jobs:
            return None
        found = site.machine.place_first([job.request for job in jobs])
        self._failed.update(job.kind for job in (jobs if found is None else jobs[: found[0]]))
        return None if found is None else (jobs[found[0]], found[1])

    def _decide_one_by_one(self, site: Site) -> None:
        """Decide job by job: beside reservations a short job may fit where a long one of its kind does not."""
        failed: dict[Hashable, int] = {}
        for job in self.waiting():
            placement = None
            if job.request.size <= site.machine.free and job.planned_length < failed.get(
                job.kind, 1 + job.planned_length
            ):
                placement = site.place(job)
            if placement is not None:
                self.withdraw(job)
                site.start(job, placement)
            elif self._head_only:
                return
            else:
                failed[job.kind] = min(job.planned_length, failed.get(job.kind, job.planned_length))
