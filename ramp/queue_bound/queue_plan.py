"""The plan of a queue, kept between questions and updated only from the first change on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.queue_bound.easy_plan import EXTRA, FREE, NEVER, SHADOW, TIME, Int64Array, plan_starts

Planner = Callable[[int, int, Int64Array, Int64Array, int, Int64Array, Int64Array, Int64Array, Int64Array], int]
"""`ramp.queue_bound.easy_plan.plan_starts`, or its compiled form."""

PLANNERS_GROUP: Final = "ramp.queue_planners"
"""Entry points: the one called `compiled` is a fast `plan_starts`, used if it is installed."""

_GONE: Final = 0
"""Planned start of a job that no longer waits."""
_ROOM: Final = 64
"""Initial room for jobs; it doubles."""


def fastest_planner() -> Planner:
    """Return `plan_starts`, compiled if a compiler is installed."""
    entry = entry_points_by_name(PLANNERS_GROUP).get("compiled")
    return plan_starts if entry is None else entry.load()


@dataclass(frozen=True, slots=True)
class JobShape:
    """A job's processors and its requested run time in microseconds, at least 1."""

    size: int
    length: int


class QueuePlan:
    """Jobs on a machine with uniform processors, the waiting ones in order, and their starts by EASY.

    A job that joins the queue last changes nothing before its own planned start, because EASY asks it last each time.
    So its start is read off the existing decisions, and only later ones are planned again, when needed. If it becomes
    the only waiting job before its start, planning begins there, because a first job has its place promised. Ends and
    starts as planned change nothing either; after an early end everything is planned again. A job that runs beyond its
    expected end is given twice the time, repeatedly, as in `simulation.schedulers`. Source of the rule:
    `ramp.queue_bound.easy_plan`.

    Args:
        capacity: processors of the machine.
        planner: does the planning.
    """

    def __init__(self, capacity: int, planner: Planner = plan_starts) -> None:
        if capacity < 1:
            raise ConfigurationError(f"must be at least 1 processor, got {capacity}", key="capacity")
        self.capacity = capacity
        self._planner = planner
        self._running = _RunningJobs()
        self._waiting: dict[Hashable, int] = {}
        """Places in the columns of jobs, in the queue's order."""
        self._used = 0
        self._jobs = np.zeros((3, _ROOM), np.int64)
        """Rows: size, length, planned start."""
        self._decisions = np.zeros((0, 4), np.int64)
        self._known_to = -1
        """Starts up to then are planned; -1 = nothing is."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._waiting or key in self._running

    def earliest(self, shape: JobShape, now: int) -> int:
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

    def submit(self, key: Hashable, shape: JobShape, now: int) -> int:
        """Add a job to the queue; return its planned start in microseconds.

        Args:
            key: a new one.
            shape: of the job.
            now: the time, not before any earlier one.

        Raises:
            ValueError: it is known, or as `earliest`.
        """
        if key in self:
            raise ValueError(f"job {key!r} is already submitted")
        start = self.earliest(shape, now)
        self._join(key, shape, start)
        # as the only waiting job it is the first, and has its place promised
        alone = self._decisions[int(np.argmax(self._decisions[:, SHADOW] == NEVER)), TIME]
        self._known_to = min(start, max(int(alone), now))
        return start

    def started(self, key: Hashable, now: int) -> None:
        """Start a waiting job at `now`."""
        place = self._waiting.pop(key)
        size, length, planned = self._jobs[:, place].tolist()
        self._running.add(key, size, now, now + length)
        if planned != now:
            self._known_to = -1
        if self._known_to < 0:
            self._jobs[2, place] = _GONE

    def runs(self, key: Hashable, size: int, start: int, end: int) -> None:
        """Add a running job that was not seen waiting, or change the expected end of a running one.

        Args:
            key: of the job.
            size: processors.
            start: when it started, microseconds.
            end: expected, microseconds.
        """
        if self._running.get(key) != (size, start, end):
            self._running.remove(key)
            self._running.add(key, size, start, end)
            self._known_to = -1

    def ended(self, key: Hashable, now: int) -> None:
        """End a running job at `now`."""
        if self._running.remove(key) != now:
            self._known_to = -1

    def withdrawn(self, key: Hashable) -> None:
        """Remove a waiting job that will never run."""
        self._jobs[2, self._waiting.pop(key)] = _GONE
        self._known_to = -1

    def _join(self, key: Hashable, shape: JobShape, start: int) -> None:
        if self._used == self._jobs.shape[1]:
            places = np.fromiter(self._waiting.values(), np.int64, len(self._waiting))
            jobs = np.zeros((3, max(2 * places.size, _ROOM)), np.int64)
            jobs[:, : places.size] = self._jobs[:, places]
            # jobs that have started as planned since the last plan are gone from these columns
            self._jobs, self._used = jobs, places.size
            self._waiting = dict(zip(self._waiting, range(places.size), strict=True))
        self._jobs[:, self._used] = shape.size, shape.length, start
        self._waiting[key] = self._used
        self._used += 1

    def _plan(self, now: int) -> None:
        if self._running.extend_overdue(now) or self._known_to < now:  # jobs that have ended since are gone
            self._known_to = -1
        if self._known_to == NEVER:
            return
        size, length, start = (row[: self._used] for row in self._jobs)
        running = self._running.ends_and_sizes()
        kept = self._decisions[:0]
        if self._known_to < 0:
            start[:] = _GONE
            start[np.fromiter(self._waiting.values(), np.int64, len(self._waiting))] = -1
        else:
            now = self._known_to
            kept = self._decisions[: int(np.searchsorted(self._decisions[:, TIME], now))]
            waits = np.zeros(self._used, np.bool_)
            waits[np.fromiter(self._waiting.values(), np.int64, len(self._waiting))] = True
            begun = waits & (start <= now)
            start[waits & (start > now)] = -1
            begun &= start + length > now
            running = np.concatenate(
                [running[running[:, 0] > now], np.column_stack([start[begun] + length[begun], size[begun]])]
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


class _RunningJobs:
    """Running jobs, in columns for `plan_starts`."""

    def __init__(self) -> None:
        self._keys: list[Hashable] = []
        self._place: dict[Hashable, int] = {}
        self._columns = np.zeros((_ROOM, 3), np.int64)
        """Expected end, size, start."""
        self._ends: list[tuple[int, int, Hashable]] = []
        """A heap of expected ends, numbered as they came; some are no longer expected."""
        self._number = 0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._place

    def ends_and_sizes(self) -> Int64Array:
        return self._columns[: len(self._keys), :2]

    def get(self, key: Hashable) -> tuple[int, int, int] | None:
        if key not in self._place:
            return None
        end, size, start = self._columns[self._place[key]].tolist()
        return size, start, end

    def add(self, key: Hashable, size: int, start: int, end: int) -> None:
        place = len(self._keys)
        if place == len(self._columns):
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)])
        self._keys.append(key)
        self._place[key] = place
        self._columns[place] = end, size, start
        self._expect(end, key)

    def remove(self, key: Hashable) -> int:
        """Forget a job; return its expected end, or 0 for an unknown one."""
        place = self._place.pop(key, None)
        if place is None:
            return 0
        end = int(self._columns[place, 0])
        last = self._keys.pop()
        if place < len(self._keys):
            self._keys[place], self._place[last] = last, place
            self._columns[place] = self._columns[len(self._keys)]
        return end

    def extend_overdue(self, now: int) -> bool:
        """Extend expected ends that have passed; whether there were any."""
        any_overdue = False
        while self._ends and self._ends[0][0] <= now:
            end, _, key = heapq.heappop(self._ends)
            place = self._place.get(key)
            if place is None or self._columns[place, 0] != end:
                continue
            start = int(self._columns[place, 2])
            length = max(end - start, 1)
            while start + length <= now:
                length *= 2
            self._columns[place, 0] = start + length
            self._expect(start + length, key)
            any_overdue = True
        return any_overdue

    def _expect(self, end: int, key: Hashable) -> None:
        self._number += 1
        heapq.heappush(self._ends, (end, self._number, key))
