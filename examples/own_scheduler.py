"""An order of one's own: whoever asks for the most processors comes first.

ramp simulate --machine flat:128 --log synthetic --scheduler examples/own_scheduler.py:SCHEDULER -o starts=first-fit
"""

from __future__ import annotations

from simulation import Job, OrderedQueue, OrderOptions, scheduler


class WidestFirst(OrderedQueue):
    """The widest request first."""

    def key(self, job: Job) -> float:
        """Lowest first."""
        return -job.request.size


SCHEDULER = scheduler(WidestFirst, options=OrderOptions)
