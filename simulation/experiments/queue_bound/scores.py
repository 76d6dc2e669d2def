"""How good bounds and chances were; all arrays of shape (jobs,), times in microseconds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ramp.queue_bound.groups import SIZE_CLASSES

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 500
"""Least number of jobs of a class or month for which a share is stated."""


def coverage(wait: Int64Array, bound: Int64Array) -> float:
    """Share of the jobs that waited no longer than their bound."""
    return float(np.mean(wait <= bound)) if wait.size else float("nan")


def quantile_loss(wait: Int64Array, bound: Int64Array, quantile: float) -> float:
    """Mean quantile ("pinball") loss in seconds: what bounds of 0 or of a year cannot win.

    Source: R. Koenker and G. Bassett, "Regression quantiles", Econometrica 46(1), 1978.
    """
    late = (wait - bound) / 1e6
    return float(np.mean(np.where(late > 0, quantile * late, (quantile - 1) * late)))


def scale_for_coverage(wait: Int64Array, bound: Int64Array, wanted: float) -> float:
    """The least factor by which bounds must be multiplied to cover a share of the jobs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(wait == 0, 0.0, wait / bound)
    place = int(np.ceil(wanted * wait.size)) - 1
    return float(np.sort(needed)[min(max(place, 0), wait.size - 1)])


def brier(came: Mask, chance: FloatArray) -> float:
    """Mean squared difference of chance and outcome.

    Source: G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78, 1950.
    """
    return float(np.mean((chance - came) ** 2))


def reliability(came: Mask, chance: FloatArray, bins: int = 10) -> list[tuple[float, float, int]]:
    """Return the mean chance, share that started in time, and jobs, for each of equal bins of the chance with jobs."""
    number = np.minimum((chance * bins).astype(np.int64), bins - 1)
    rows = []
    for each in range(bins):
        taken = number == each
        if taken.any():
            rows.append((float(chance[taken].mean()), float(came[taken].mean()), int(taken.sum())))
    return rows


def calibration_error(came: Mask, chance: FloatArray) -> float:
    """Mean distance of chance and share over ten bins, by the jobs in each (expected calibration error)."""
    rows = reliability(came, chance)
    return sum(abs(said - found) * jobs for said, found, jobs in rows) / sum(jobs for *_, jobs in rows)


def size_classes(size: Int64Array) -> Iterator[tuple[str, Mask]]:
    """Classes of sizes and who is in each."""
    least = 1
    for most in SIZE_CLASSES:
        yield f"{least}-{most}", (size >= least) & (size <= most)
        least = most + 1
    yield f"{least} and more", size >= least


def months(submit: Int64Array) -> Iterator[tuple[str, Mask]]:
    """Months of 30 days from the first submission, and who came in each."""
    number = (submit - submit[0]) // (30 * 86_400_000_000)
    for each in np.unique(number).tolist():
        yield str(each + 1), number == each
