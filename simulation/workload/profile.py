"""Cores taken on one machine over future time, and the plan of its batch queue that says so.

The plan (`QueueProjection`) says when the running jobs will end and the waiting ones will have their turn. Only what
the queue knows is used: requested times, never run times. Waiting jobs are planned first come first served without
overtaking: each starts as soon as its cores are free for its whole requested time, but not before the job ahead of it.
Reserved windows are taken first; jobs are planned around them.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul, sub
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.fast_dataclass import fast_dataclass

Int64Array = NDArray[np.int64]

NEVER: Final = int(np.iinfo(np.int64).max)
"""A time that no window reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class CoreProfile:
    """Cores taken from an instant on.

    Attributes:
        capacity: cores of the machine.
        times: microseconds, strictly ascending; the profile begins at the first.
        taken: cores taken from that time until the next, 0 to `capacity`; the last one for ever.
    """

    capacity: int
    times: Sequence[int]
    taken: Sequence[int]

    @staticmethod
    def of_intervals(
        capacity: int, origin: int, starts: Int64Array, ends: Int64Array, cores: Int64Array
    ) -> CoreProfile:
        """Add up what each interval takes.

        Args:
            capacity: cores of the machine; the sum never counts more (two claims on the same core take it once).
            origin: where the profile begins, microseconds; earlier parts of intervals are left out.
            starts: shape (intervals,), microseconds.
            ends: shape (intervals,), microseconds, exclusive.
            cores: shape (intervals,), cores each takes.
        """
        live = ends > np.maximum(starts, origin)
        moments = np.concatenate(([origin], np.maximum(starts[live], origin), ends[live]))
        changes = np.concatenate(([0], cores[live], -cores[live]))
        order = np.argsort(moments, kind="stable")
        moments = moments[order]
        totals = np.cumsum(changes[order])
        last_of_moment = np.append(moments[1:] != moments[:-1], True)
        taken = np.minimum(totals[last_of_moment], capacity)
        return CoreProfile(capacity, moments[last_of_moment].tolist(), taken.tolist())

    def max_over(self, start: int, end: int) -> int:
        """Return the most cores taken at any time of [start, end).

        Args:
            start: microseconds, not before the profile's begin.
            end: microseconds, after `start`.
        """
        if not self.times[0] <= start < end:
            raise self._outside(start, end)
        return max(self.taken[bisect_right(self.times, start) - 1 : bisect_left(self.times, end)])

    def mean_over(self, start: int, end: int) -> float:
        """Return the cores taken in the time-mean of [start, end).

        Args:
            start: microseconds, not before the profile's begin.
            end: microseconds, after `start`.
        """
        if not self.times[0] <= start < end:
            raise self._outside(start, end)
        first, last = bisect_right(self.times, start) - 1, bisect_left(self.times, end)
        begins = (start, *self.times[first + 1 : last])
        lengths = map(sub, (*begins[1:], end), begins)
        taken: int = sum(map(mul, lengths, self.taken[first:last]))
        return taken / (end - start)

    def earliest_start(self, cores: int, duration: int, earliest: int, latest: int = NEVER) -> int | None:
        """Return the first time from which `cores` are free for the whole of `duration`.

        Args:
            cores: cores wanted, at most the capacity.
            duration: microseconds, positive.
            earliest: first start allowed, microseconds, not before the profile's begin.
            latest: last start allowed, microseconds.

        Returns:
            The start, microseconds, or None if every one is after `latest`.
        """
        room = self.capacity - cores
        step = bisect_right(self.times, earliest) - 1
        start: int | None = earliest
        for place in range(step, len(self.times)):
            time = self.times[place]
            if start is not None and time - start >= duration:
                break
            if self.taken[place] > room:
                start = None
            elif start is None:
                start = time
        return start if start is not None and start <= latest else None

    def _outside(self, start: int, end: int) -> ValueError:
        return ValueError(f"window [{start}, {end}) is empty or before the profile's begin {self.times[0]}")


@fast_dataclass(frozen=True, slots=True)
class ReservedWindow:
    """Cores promised to a reservation.

    Attributes:
        start: microseconds.
        end: microseconds, exclusive.
        cores: cores promised.
    """

    start: int
    end: int
    cores: int


class QueueProjection:
    """The plan of one machine's queue as of one instant; made only as far ahead as it is asked for."""

    def __init__(
        self,
        *,
        now: int,
        capacity: int,
        running: tuple[Int64Array, Int64Array],
        queued: tuple[Int64Array, Int64Array],
        reserved: Sequence[ReservedWindow] = (),
    ) -> None:
        """Begin a plan.

        Args:
            now: the instant, microseconds; nothing is planned before it.
            capacity: cores of the machine.
            running: cores and projected ends (microseconds, after `now`) of the running jobs; at most
                `capacity` cores in all.
            queued: cores (each at most `capacity`) and requested times (microseconds) of the waiting jobs, in order.
            reserved: windows that are taken already, in any order.
        """
        self.now = now
        self.capacity = capacity
        self._running_cores, self._running_ends = running
        self._queued_cores: list[int] = queued[0].tolist()
        self._queued_times: list[int] = queued[1].tolist()
        self._reserved = [window for window in reserved if window.end > now]
        self._reserved_ends = sorted(window.end for window in self._reserved)
        self._clock = now
        self._used = int(self._running_cores.sum())
        self._ends: list[tuple[int, int]] = list(
            zip(self._running_ends.tolist(), self._running_cores.tolist(), strict=True)
        )
        heapq.heapify(self._ends)
        self.planned_starts: list[int] = []
        """Planned starts of the first waiting jobs, microseconds; as many as have been planned so far."""
        self._profile: CoreProfile | None = None
        self._complete_until = now

    def profile(self, until: int = NEVER) -> CoreProfile:
        """Return the cores taken by running, planned and reserved jobs.

        Args:
            until: the profile is complete for all times before this, microseconds.
        """
        if self._profile is None or until > self._complete_until:
            planned_before = len(self.planned_starts)
            self._extend(until)
            if self._profile is None or len(self.planned_starts) > planned_before:
                self._profile = self._assemble()
        return self._profile

    def _extend(self, until: int) -> None:
        """Plan waiting jobs until the next one would start at or after `until`."""
        clock, ends = self._clock, self._ends
        cores, times, starts = self._queued_cores, self._queued_times, self.planned_starts
        while len(starts) < len(cores) and clock < until:
            wanted, duration = cores[len(starts)], times[len(starts)]
            while ends and ends[0][0] <= clock:
                self._used -= heapq.heappop(ends)[1]
            if self._fits(clock, wanted, duration):
                starts.append(clock)
                self._used += wanted
                heapq.heappush(ends, (clock + duration, wanted))
            else:
                clock = self._next_chance(clock)
        self._clock = clock
        self._complete_until = NEVER if len(starts) == len(cores) else clock

    def _fits(self, start: int, wanted: int, duration: int) -> bool:
        """Return whether the cores are free over [start, start + duration), counting all ends up to `start`."""
        room = self.capacity - self._used - wanted
        if room < 0 or not self._reserved:
            return room >= 0
        end = start + duration
        overlapping = [window for window in self._reserved if window.start < end and window.end > start]
        if sum(window.cores for window in overlapping) <= room:
            return True
        # What runs at `start` only decreases later, so the tight moments are the start and the begins of reservations.
        for moment in {max(window.start, start) for window in overlapping}:
            promised = sum(window.cores for window in overlapping if window.start <= moment < window.end)
            ended = sum(cores for job_end, cores in self._ends if job_end <= moment)
            if promised > room + ended:
                return False
        return True

    def _next_chance(self, clock: int) -> int:
        """Return the next time at which cores come free: a job's end or a reservation's."""
        chance = self._ends[0][0] if self._ends else NEVER
        for end in self._reserved_ends:
            if end > clock:
                return min(chance, end)
        return chance

    def _assemble(self) -> CoreProfile:
        planned = len(self.planned_starts)
        starts = np.array(self.planned_starts, dtype=np.int64)
        cores = np.array(self._queued_cores[:planned], dtype=np.int64)
        windows = np.array([(w.start, w.end, w.cores) for w in self._reserved], dtype=np.int64).reshape(-1, 3)
        return CoreProfile.of_intervals(
            self.capacity,
            self.now,
            np.concatenate((np.full(len(self._running_ends), self.now, dtype=np.int64), starts, windows[:, 0])),
            np.concatenate(
                (self._running_ends, starts + np.array(self._queued_times[:planned], dtype=np.int64), windows[:, 1])
            ),
            np.concatenate((self._running_cores, cores, windows[:, 2])),
        )
