"""What one run did over time: which units each job held from when to when, and how much ran and waited."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulation.queueing.queue_simulation import EndedJob
from simulation.queueing.whole_log import LogRun
from simulation.schedulers.interface import AdvanceReservation

Int64Array = NDArray[np.int64]
RESERVED: Final = -1
"""In place of a job's number: an advance reservation."""


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Runs of neighbouring units that one job or reservation held, one entry a run.

    Attributes:
        begin: microseconds, shape (bars,).
        end: microseconds, shape (bars,).
        low: number of the first unit, shape (bars,).
        high: number of the last unit and 1, shape (bars,).
        job_number: `RESERVED` for an advance reservation, shape (bars,).
        size: units that the job asked for, shape (bars,).
    """

    begin: Int64Array
    end: Int64Array
    low: Int64Array
    high: Int64Array
    job_number: Int64Array
    size: Int64Array


def runs_of_bits(units: int) -> list[tuple[int, int]]:
    """Return runs of set bits: the first one's number, and the last one's and 1."""
    runs = []
    low = 0
    while units:
        skipped = (units & -units).bit_length() - 1
        units >>= skipped
        low += skipped
        length = (~units & (units + 1)).bit_length() - 1
        runs.append((low, low + length))
        units >>= length
        low += length
    return runs


class PlacementRecorder:
    """Records where jobs ran on a machine whose units have places; to be called with every job that ends."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, int, int]] = []

    def __call__(self, ended: EndedJob) -> None:
        """Note a job that has ended."""
        number, size = ended.job.job_number, ended.job.request.size
        for segment in ended.segments:
            self._add(segment.begin, segment.end, segment.placement.nodes, number, size)

    def reserved(self, granted: AdvanceReservation) -> None:
        """Note a reservation that was granted."""
        self._add(granted.begin_time, granted.end_time, granted.placement.nodes, RESERVED, granted.placement.size)

    def bars(self) -> Bars:
        """Return the runs of units of all jobs and reservations noted."""
        return _bars(self._rows)

    def _add(self, begin: int, end: int, units: int, number: int, size: int) -> None:
        self._rows.extend((begin, end, low, high, number, size) for low, high in runs_of_bits(units))


def bars_without_places(run: LogRun) -> Bars:
    """Return the bars of a flat machine's run: each job is drawn on the lowest units that are free."""
    schedule = run.schedule
    segments = schedule.segments()
    # a job that ends where another begins has gone by then, also where it continues with another size itself
    held = schedule.size if schedule.pieces is None else segments.held
    holders = list(
        zip(
            segments.begin.tolist(),
            segments.end.tolist(),
            run.jobs.job_number[segments.job].tolist(),
            held.tolist(),
            strict=True,
        )
    )
    granted = [one for one in run.reservations if one is not None]
    holders += [(one.begin_time, one.end_time, RESERVED, one.placement.size) for one in granted]
    holders.sort(key=lambda holder: holder[0])
    free = [(0, schedule.capacity)]
    leaving: list[tuple[int, int, list[tuple[int, int]]]] = []
    rows: list[tuple[int, int, int, int, int, int]] = []
    for index, (begin, end, number, size) in enumerate(holders):
        while leaving and leaving[0][0] <= begin:
            for piece in heapq.heappop(leaving)[2]:
                _give_back(free, piece)
        pieces = _take(free, size)
        heapq.heappush(leaving, (end, index, pieces))
        rows.extend((begin, end, low, high, number, size) for low, high in pieces)
    return _bars(rows)


def _take(free: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    pieces = []
    used = 0
    for low, high in free:
        if not size:
            break
        taken = min(size, high - low)
        pieces.append((low, low + taken))
        size -= taken
        if taken < high - low:
            free[used] = (low + taken, high)
            break
        used += 1
    del free[:used]
    return pieces


def _give_back(free: list[tuple[int, int]], piece: tuple[int, int]) -> None:
    """Put units back among the free runs, joined with their neighbours."""
    low, high = piece
    place = bisect_left(free, piece)
    if place < len(free) and free[place][0] == high:
        high = free.pop(place)[1]
    if place and free[place - 1][1] == low:
        low = free.pop(place - 1)[0]
    insort(free, (low, high))


def _bars(rows: Sequence[tuple[int, int, int, int, int, int]]) -> Bars:
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return Bars(*(np.ascontiguousarray(column) for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A quantity that changes in steps.

    Attributes:
        times: microseconds, ascending, shape (steps,).
        values: from each time until the next, shape (steps,).
    """

    times: Int64Array
    values: NDArray[np.float64]

    def mean_least_most(
        self, edges: Int64Array
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean, least and largest value between neighbouring times.

        Args:
            edges: microseconds, ascending, none before the first step; shape (n + 1,).

        Returns:
            Three arrays of shape (n,).
        """
        lengths = np.diff(self.times, append=max(int(edges[-1]), int(self.times[-1])))
        area = np.concatenate(([0.0], np.cumsum(self.values * lengths)))
        moments = np.append(self.times, self.times[-1] + lengths[-1])
        mean = np.diff(np.interp(edges, moments, area)) / np.maximum(np.diff(edges), 1)
        at_edges = self.values[np.searchsorted(self.times, edges[:-1], side="right") - 1]
        values = np.concatenate((at_edges, self.values))
        moments = np.concatenate((edges[:-1], self.times))
        order = np.argsort(moments, kind="stable")
        moments = moments[order]
        first = np.searchsorted(moments, edges[:-1])
        inside = values[order][: np.searchsorted(moments, edges[-1])]
        return mean, np.minimum.reduceat(inside, first), np.maximum.reduceat(inside, first)


def amount_over_time(begin: Int64Array, end: Int64Array, amount: Int64Array | None = None) -> Steps:
    """Return the running total of amounts that begin and end.

    Args:
        begin: microseconds, shape (n,).
        end: microseconds, shape (n,).
        amount: of each; 1 by default; shape (n,).
    """
    amounts = np.ones_like(begin) if amount is None else amount
    moments = np.concatenate((begin, end))
    changes = np.concatenate((amounts, -amounts))
    times, place = np.unique(moments, return_inverse=True)
    sums = np.bincount(place, weights=changes, minlength=len(times))
    return Steps(times.astype(np.int64), np.cumsum(sums))
