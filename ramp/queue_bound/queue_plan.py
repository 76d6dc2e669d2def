"""The plan of a queue: when each of its jobs starts, and when one that joins it now would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.queue_bound.easy_plan import EXTRA, FREE, NEVER, SHADOW, TIME, Int64Array, plan_starts
from ramp.queue_bound.predictor import QueuedJob

Planner = Callable[[int, int, Int64Array, Int64Array, int, Int64Array, Int64Array, Int64Array, Int64Array], int]
"""`ramp.queue_bound.easy_plan.plan_starts`, or its compiled form."""

PLANNERS_GROUP: Final = "ramp.queue_planners"
"""Entry points: the one called `compiled` is a fast `plan_starts`, used if it is installed."""

GONE: Final = NEVER
"""Planned start of a job that no longer waits."""

_ROOM: Final = 64
"""Initial room for jobs; it doubles."""


def fastest_planner() -> Planner:
    """Return `plan_starts`, compiled if a compiler is installed."""
    entry = entry_points_by_name(PLANNERS_GROUP).get("compiled")
    return plan_starts if entry is None else entry.load()


class QueuePlan:
    """Jobs on a machine with uniform processors, the waiting ones in order, and their starts by EASY.

    A job that joins the queue last changes nothing before its own planned start, because EASY asks it last each time.
    So its start is read off the existing decisions, and only later ones are planned again, when needed. If it becomes
    the only waiting job before its start, planning begins there, because a first job has its place promised. Source of
    the rule: `ramp.queue_bound.easy_plan`. `simulation.queueing.followed_plan` follows a queue through later events.

    Args:
        capacity: processors of the machine.
        planner: does the planning.
    """

    def __init__(self, capacity: int, planner: Planner = plan_starts) -> None:
        if capacity < 1:
            raise ConfigurationError(f"must be at least 1 processor, got {capacity}", key="capacity")
        self.capacity = capacity
        self._planner = planner
        self._running = np.zeros((0, 2), np.int64)
        """Expected end and size of each running job."""
        self._used = 0
        self._jobs = np.zeros((3, _ROOM), np.int64)
        """Rows: size, length, planned start."""
        self._decisions = np.zeros((0, 4), np.int64)
        self._known_to = -1
        """Starts up to then are planned; -1 = nothing is."""

    def runs(self, size: int, end: int) -> None:
        """Add a running job with its processors and its expected end in microseconds."""
        self._running = np.append(self._running, [[end, size]], axis=0)
        self._known_to = -1

    def earliest(self, shape: QueuedJob, now: int) -> int:
        """Return when a job would start that joined the queue now, in microseconds.

        Args:
            shape: of the job.
            now: the time, not before any earlier one.

        Raises:
            ValueError: it is larger than the machine, or its length is zero.
        """
        if not 1 <= shape.size <= self.capacity or shape.length < 1:
            raise ValueError(
                f"size must be 1 to {self.capacity} processors and length above zero, "
                f"got {shape.size} and {shape.length}"
            )
        self._plan(now)
        first = max(int(np.searchsorted(self._decisions[:, TIME], now, side="right")) - 1, 0)
        decisions = self._decisions[first:]
        times = np.maximum(decisions[:, TIME], now)
        in_time = times + shape.length <= decisions[:, SHADOW]
        fits = (decisions[:, FREE] >= shape.size) & (in_time | (decisions[:, EXTRA] >= shape.size))
        return int(times[int(np.argmax(fits))])

    def submit(self, shape: QueuedJob, now: int) -> int:
        """Add a job to the queue; return its planned start in microseconds; arguments and errors as of `earliest`."""
        start = self.earliest(shape, now)
        self._join(shape, start)
        # as the only waiting job it is the first, and has its place promised
        alone = self._decisions[int(np.argmax(self._decisions[:, SHADOW] == NEVER)), TIME]
        self._known_to = min(start, max(int(alone), now))
        return start

    def _join(self, shape: QueuedJob, start: int) -> None:
        if self._used == self._jobs.shape[1]:
            self._jobs = np.concatenate([self._jobs, np.zeros_like(self._jobs)], axis=1)
        self._jobs[:, self._used] = shape.size, shape.length, start
        self._used += 1

    def _plan(self, now: int) -> None:
        if self._known_to == NEVER:
            return
        size, length, start = (row[: self._used] for row in self._jobs)
        kept, begun = self._decisions[:0], np.zeros(self._used, np.bool_)
        if self._known_to >= now:
            now = self._known_to
            kept = self._decisions[: int(np.searchsorted(self._decisions[:, TIME], now))]
            begun = (start <= now) & (start + length > now)
            start[(start > now) & (start < GONE)] = -1
        else:
            start[start < GONE] = -1
        running = np.concatenate(
            [self._running[self._running[:, 0] > now], np.column_stack([start[begun] + length[begun], size[begun]])]
        )
        self._decisions = np.concatenate([kept, self._decide(now, running, size, length, start)])
        self._known_to = NEVER

    def _decide(
        self, now: int, running: Int64Array, size: Int64Array, length: Int64Array, start: Int64Array
    ) -> Int64Array:
        count = len(running)
        order = np.argsort(running[:, 0], kind="stable")
        room = count + size.size
        ends, held = np.zeros(room, np.int64), np.zeros(room, np.int64)
        ends[:count], held[:count] = running[order, 0], running[order, 1]
        free = self.capacity - int(running[:, 1].sum())
        decisions = np.empty((room + 1, 4), np.int64)
        made = self._planner(now, free, ends, held, count, size, length, start, decisions)
        return decisions[:made]
