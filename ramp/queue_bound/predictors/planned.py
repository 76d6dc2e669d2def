"""Bounds from the plan of the live queue: the planned wait plus a bound on the delay of similar jobs.

A job that the plan starts at once does so, because the scheduler decides by the same rule. For the others the plan
errs: jobs end before their requested times, and later jobs may overtake. The bound covers that error. Its quantile is
adjusted so that the share of misses is as requested in the long run, for any distribution and dependence of the errors
(adaptive conformal inference); a miss is counted as soon as the bound has passed, not only when the job starts.

Sources: I. Gibbs and E. Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021, equation 2;
A. W. Mu'alem and D. G. Feitelson, IEEE Trans. Parallel and Distributed Systems 12(6), 2001 (the plan).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final

from ramp.options import Bounds
from ramp.queue_bound.groups import Groups, octave
from ramp.queue_bound.order_statistic import RecentValues
from ramp.queue_bound.predictor import QueuedJob, predictor


@dataclass(frozen=True, slots=True)
class PlannedOptions:
    """Options of `planned`.

    Attributes:
        target: share of the waiting jobs that start within their bound, in the long run.
        gamma: how fast the quantile follows misses.
        groups: properties that tell jobs apart, for bounds.
        window: maximum number of errors kept of a group; older ones are dropped.
        enough: minimum errors of a group; with fewer, those of all jobs are used.
        same_rule: whether the queue's scheduler follows the plan's rule, so that jobs planned to start at once do so.
            Otherwise these jobs have a bound like others, best with groups by plan, size and length.
    """

    target: Annotated[float, Bounds(0.001, 0.999)] = 0.96
    gamma: Annotated[float, Bounds(0.001, 0.999)] = 0.01
    groups: Groups = Groups.SIZE
    window: Annotated[int, Bounds(1)] = 1000
    enough: Annotated[int, Bounds(1)] = 59
    same_rule: bool = True


class Planned:
    """The planned wait and a bound on the additional delay."""

    def __init__(self, options: PlannedOptions) -> None:
        self._options = options
        self._groups: dict[Hashable, _Errors] = {}
        self._all = _Errors(options)
        self._ratios: dict[int, RecentValues[float]] = {}
        """Waits over planned waits, by octave of the planned wait."""

    def bound(self, job: QueuedJob) -> int | None:
        """See `Predictor`; a job that is planned to start at once has the bound 0."""
        if self._starts_at_once(job):
            return 0
        group = self._group(job)
        error = (group if len(group.errors) >= self._options.enough else self._all).bound(group.level)
        return None if error is None else max(_planned(job) + error, 0)

    def chance(self, job: QueuedJob, within: int) -> float | None:
        """See `Predictor`: the share of the jobs with a similar planned wait whose delay was a smaller part of it."""
        if self._starts_at_once(job):
            return 1.0
        planned = _planned(job)
        ratios = self._ratios.get(octave(planned))
        if ratios is None or len(ratios) < self._options.enough:
            return None
        return ratios.not_above(within / max(planned, 1)) / len(ratios)

    def started(self, job: QueuedJob, wait: int, bound: int | None = None, *, overdue: bool = False) -> None:
        """See `Predictor`; a job that is planned to start at once teaches nothing."""
        if self._starts_at_once(job):
            return
        planned, group = _planned(job), self._group(job)
        if bound is not None and not overdue:
            group.judged(missed=wait > bound)
        group.errors.add(wait - planned)
        self._all.errors.add(wait - planned)
        ratios = self._ratios.setdefault(octave(planned), RecentValues(self._options.window))
        ratios.add(wait / max(planned, 1))

    def overdue(self, job: QueuedJob) -> None:
        """See `Predictor`; such a job is a miss already."""
        if not self._starts_at_once(job):
            self._group(job).judged(missed=True)

    def _starts_at_once(self, job: QueuedJob) -> bool:
        return self._options.same_rule and _planned(job) == 0

    def _group(self, job: QueuedJob) -> _Errors:
        return self._groups.setdefault(self._options.groups.of(job), _Errors(self._options))


class _Errors:
    """Delays of like jobs after their planned start, in microseconds, and the level of their bounds."""

    __slots__ = ("_options", "errors", "level")

    def __init__(self, options: PlannedOptions) -> None:
        self._options = options
        self.errors: RecentValues[int] = RecentValues(options.window)
        self.level = options.target

    def bound(self, level: float) -> int | None:
        """Return the error at a level; the largest if even that is too small."""
        count = len(self.errors)
        if count < self._options.enough:
            return None
        return self.errors.smallest(min(max(ceil((count + 1) * level), 1), count))

    def judged(self, *, missed: bool) -> None:
        """Learn whether a bound has held: alpha = alpha + gamma (1 - target - miss), with level = 1 - alpha."""
        self.level -= self._options.gamma * (1 - self._options.target - missed)


def _planned(job: QueuedJob) -> int:
    assert job.planned is not None, "the predictor `planned` needs a plan"
    return job.planned


PREDICTOR: Final = predictor(
    Planned, about="The plan of the live queue, and a bound on its error.", options=PlannedOptions
)
