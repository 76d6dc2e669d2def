"""Bounds from past waits alone: the Brevik method batch predictor.

Sources: J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines",
PPoPP 2006 (the order statistic, and the history that is cut after three misses in a row); D. Nurmi, J. Brevik and
R. Wolski, "QBETS: queue bounds estimation from time series", JSSPP 2007 (groups of jobs); D. Nurmi and others, "VARQ:
virtual advance reservations for queues", HPDC 2008 (the same read backwards: the chance to start by a time).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Final

from ramp.options import Bounds
from ramp.queue_bound.groups import Groups
from ramp.queue_bound.order_statistic import RecentValues, fewest, rank
from ramp.queue_bound.predictor import QueuedJob, predictor


@dataclass(frozen=True, slots=True)
class BmbpOptions:
    """Options of `bmbp`.

    Attributes:
        quantile: share of the jobs that start within their bound.
        confidence: probability that a bound is above that quantile of the waits.
        groups: properties that tell jobs apart.
        misses: number of consecutive misses after which the history before them is dropped.
        history: maximum number of waits kept of a group; older ones are dropped.
    """

    quantile: Annotated[float, Bounds(0.001, 0.999)] = 0.95
    confidence: Annotated[float, Bounds(0.001, 0.999)] = 0.95
    groups: Groups = Groups.SIZE_LENGTH
    misses: Annotated[int, Bounds(1)] = 3
    history: Annotated[int, Bounds(1)] = 10_000


class Bmbp:
    """An order statistic of the waits of like jobs, begun anew after three misses in a row.

    A wait is learnt when its job starts. Groups with too few waits have no bound yet.
    """

    def __init__(self, options: BmbpOptions) -> None:
        self._options = options
        self._groups: dict[Hashable, _Group] = {}

    def bound(self, job: QueuedJob) -> int | None:
        waits = self._group(job).waits
        place = rank(len(waits), self._options.quantile, self._options.confidence)
        return None if place is None else waits.smallest(place)

    def chance(self, job: QueuedJob, within: int) -> float | None:
        """See `Predictor`: the share of the waits kept that were no longer."""
        waits = self._group(job).waits
        if len(waits) < fewest(self._options.quantile, self._options.confidence):
            return None
        return waits.not_above(within) / len(waits)

    def started(self, job: QueuedJob, wait: int, bound: int | None = None, *, overdue: bool = False) -> None:
        del overdue  # a miss counts in the order of starts
        group = self._group(job)
        group.waits.add(wait)
        if bound is None:
            return
        group.missed = group.missed + 1 if wait > bound else 0
        if group.missed >= self._options.misses:
            group.waits.keep_last(fewest(self._options.quantile, self._options.confidence))
            group.missed = 0

    def overdue(self, job: QueuedJob) -> None:
        """Nothing is learnt before a job starts."""

    def _group(self, job: QueuedJob) -> _Group:
        return self._groups.setdefault(self._options.groups.of(job), _Group(self._options.history))


class _Group:
    """Waits of like jobs, and the number of consecutive ones above their bound."""

    __slots__ = ("missed", "waits")

    def __init__(self, history: int) -> None:
        self.waits: RecentValues[int] = RecentValues(history)
        self.missed = 0


PREDICTOR: Final = predictor(Bmbp, about="A bound from the past waits of like jobs (BMBP, QBETS).", options=BmbpOptions)
