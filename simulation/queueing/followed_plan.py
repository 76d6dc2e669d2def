"""The plan of a queue, followed through its events and updated only from the first change on."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ramp.queue_bound.predictor import QueuedJob
from ramp.queue_bound.queue_plan import GONE, Planner, QueuePlan, plan_starts


class FollowedPlan(QueuePlan):
    """A plan whose jobs have keys, start and end.

    Ends and starts as planned change nothing; after an early end everything is planned again. A job that runs beyond
    its expected end is given twice the time, repeatedly, as in `simulation.schedulers`.

    Args:
        capacity: processors of the machine.
        planner: does the planning.
    """

    def __init__(self, capacity: int, planner: Planner = plan_starts) -> None:
        super().__init__(capacity, planner)
        self._waiting: dict[Hashable, int] = {}
        """Places in the columns of jobs, in the queue's order."""
        self._keys: list[Hashable] = []
        """Keys of the running jobs."""
        self._began: list[int] = []
        """Starts of the running jobs."""

    def joined(self, key: Hashable, shape: QueuedJob, now: int) -> int:
        """Add a job with a new key to the queue; see `submit`."""
        if key in self._waiting or key in self._keys:
            raise ValueError(f"job {key!r} is already submitted")
        start = self.submit(shape, now)
        self._waiting[key] = self._used - 1
        return start

    def runs(self, size: int, end: int) -> None:
        """Add a running job without a key, whose start is unknown."""
        super().runs(size, end)
        self._keys.append(object())
        self._began.append(end)

    def started(self, key: Hashable, now: int) -> None:
        """Start a waiting job at `now`."""
        place = self._waiting.pop(key)
        size, length, planned = self._jobs[:, place].tolist()
        known_to = self._known_to if planned == now else -1
        self.runs(size, now + length)
        self._known_to, self._keys[-1], self._began[-1] = known_to, key, now
        self._jobs[2, place] = GONE

    def ended(self, key: Hashable, now: int) -> None:
        """End a running job at `now`."""
        place = self._keys.index(key)
        if self._running[place, 0] != now:
            self._known_to = -1
        self._running = np.delete(self._running, place, axis=0)
        del self._keys[place], self._began[place]

    def withdrawn(self, key: Hashable) -> None:
        """Remove a waiting job that will never run."""
        self._jobs[2, self._waiting.pop(key)] = GONE
        self._known_to = -1

    def _join(self, shape: QueuedJob, start: int) -> None:
        if self._used == self._jobs.shape[1]:  # jobs that are gone make room
            waiting = self._jobs[:, list(self._waiting.values())]
            self._jobs, self._used = np.concatenate([waiting, np.zeros_like(self._jobs)], axis=1), waiting.shape[1]
            self._waiting = dict(zip(self._waiting, range(self._used), strict=True))
        super()._join(shape, start)

    def _plan(self, now: int) -> None:
        for place in np.flatnonzero(self._running[:, 0] <= now).tolist():
            length = max(int(self._running[place, 0]) - self._began[place], 1)
            while self._began[place] + length <= now:
                length *= 2
            self._running[place, 0] = self._began[place] + length
            self._known_to = -1
        super()._plan(now)
