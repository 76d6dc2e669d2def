"""A scheduler of one's own: whoever asked for the least time comes first.

ramp simulate --machine flat:128 --log synthetic --scheduler examples/own_scheduler.py:ShortestFirst
"""

from __future__ import annotations

from collections.abc import Iterable

from simulation import Job, Site


class ShortestFirst:
    """Starts waiting jobs in order of their requested times; what does not fit now is passed over."""

    def __init__(self) -> None:
        self._queue: list[Job] = []

    def submit(self, job: Job) -> None:
        """A job joins the queue."""
        self._queue.append(job)
        self._queue.sort(key=lambda waiting: waiting.requested_time)

    def released(self) -> None:
        """Something became free; nothing was remembered that would no longer be true."""

    def waiting(self) -> Iterable[Job]:
        """The queue in its order."""
        return list(self._queue)

    def decide(self, site: Site) -> None:
        """Start what fits."""
        for job in list(self._queue):
            placement = site.place(job)
            if placement is not None:
                self._queue.remove(job)
                site.start(job, placement)
