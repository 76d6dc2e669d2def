"""The plan of a queue: when each of its jobs starts, and when one that joins it now would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.queue_bound.predictor import QueuedJob

Int64Array = NDArray[np.int64]

NEVER: Final = (1 << 63) - 1
"""Later than every time."""

BLOCK: Final = 32
"""Jobs whose least size and length are kept together, so that all are skipped at once if none can fit."""
STARTED: Final = 1 << 62
"""Size of a job that no longer waits: so large that it never fits."""

TIME, FREE, SHADOW, EXTRA = 0, 1, 2, 3
"""Columns of the decisions of a plan."""

Planner = Callable[[int, int, Int64Array, Int64Array, int, Int64Array, Int64Array, Int64Array, Int64Array], int]
"""`plan_starts`, or its compiled form."""

PLANNERS_GROUP: Final = "ramp.queue_planners"
"""Entry points: the one called `compiled` is a fast `plan_starts`, used if it is installed."""

GONE: Final = NEVER
"""Planned start of a job that no longer waits."""

_ROOM: Final = 64
"""Initial room for jobs; it doubles."""


def plan_starts(
    now: int,
    free: int,
    ends: Int64Array,
    held: Int64Array,
    running: int,
    size: Int64Array,
    length: Int64Array,
    start: Int64Array,
    decisions: Int64Array,
) -> int:
    """Plan the start of every waiting job, and record what each decision leaves for one more job at the queue's end.

    Source: A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001, section 3:
    jobs start in order of arrival; beside the first that does not fit, a later one starts if it ends by the shadow time
    or takes only extra processors. The function calls no other of ours, so that numba can compile it unchanged.

    Args:
        now: time of the first decision; all times in one unit.
        free: processors free now.
        ends: expected ends of running jobs, ascending, all after `now`; shape (running + waiting,), changed.
        held: processors of these, in the same order and shape; changed.
        running: how many of `ends` are in use.
        size: processors of the waiting jobs in the queue's order, none above the machine's; shape (waiting,).
        length: requested run times, at least 1; shape (waiting,).
        start: planned starts, shape (waiting,): written where -1; the others have been planned before `now`.
        decisions: one row per decision: time, free processors left, shadow time and extra processors beside the job
            that is first in the queue then (`NEVER` if none waits); shape (running + waiting + 1, 4), written.

    Returns:
        The number of decisions; the last is when everything has ended.
    """
    queue = np.flatnonzero(start < 0)
    need, longest, waiting = size[queue], length[queue], queue.size
    blocks = -(-waiting // BLOCK)
    least, shortest = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
    for block in range(blocks):
        least[block] = need[block * BLOCK : (block + 1) * BLOCK].min()
        shortest[block] = longest[block * BLOCK : (block + 1) * BLOCK].min()
    low, high, count = 0, running, 0
    while True:
        shadow, extra = NEVER, 0
        for block in range(blocks):
            if free == 0:
                break
            none_fits = least[block] > free or (least[block] > extra and now + shortest[block] > shadow)
            if least[block] == STARTED or (none_fits and shadow < NEVER):
                continue
            for job in range(block * BLOCK, min((block + 1) * BLOCK, waiting)):
                if need[job] > free or (need[job] > extra and now + longest[job] > shadow):
                    if shadow == NEVER and need[job] != STARTED:  # the first that does not fit: its place is promised
                        available, place = free, low
                        while available < need[job] or (place < high and ends[place] == shadow):
                            available += held[place]
                            shadow = ends[place]
                            place += 1
                        extra = available - need[job]
                    continue
                end = now + longest[job]
                if end > shadow:
                    extra -= need[job]
                free -= need[job]
                place = high
                while place > low and ends[place - 1] > end:
                    ends[place] = ends[place - 1]
                    held[place] = held[place - 1]
                    place -= 1
                ends[place] = end
                held[place] = need[job]
                high += 1
                start[queue[job]] = now
                need[job] = STARTED
            least[block] = need[block * BLOCK : (block + 1) * BLOCK].min()
        decisions[count, TIME] = now
        decisions[count, FREE] = free
        decisions[count, SHADOW] = shadow
        decisions[count, EXTRA] = extra
        count += 1
        if low == high:
            return count
        now = ends[low]
        while low < high and ends[low] == now:
            free += held[low]
            low += 1


def fastest_planner() -> Planner:
    """Return `plan_starts`, compiled if a compiler is installed."""
    entry = entry_points_by_name(PLANNERS_GROUP).get("compiled")
    return plan_starts if entry is None else entry.load()


class QueuePlan:
    """Jobs on a machine with uniform processors, the waiting ones in order, and their starts by EASY.

    A job that joins the queue last changes nothing before its own planned start, because EASY asks it last each time.
    So its start is read off the existing decisions, and only later ones are planned again, when needed. If it becomes
    the only waiting job before its start, planning begins there, because a first job has its place promised. Source of
    the rule: `plan_starts`. `simulation.queueing.followed_plan` follows a queue through later events.
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
