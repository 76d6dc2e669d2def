"""Means over seeds with their 95 % confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Final

_T_975: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % quantiles of Student's t with 1 to 30 degrees of freedom; beyond, the last one is a little too wide."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean and how sure it is.

    Attributes:
        mean: of the values.
        half_width: half of the 95 % confidence interval of the mean; 0 for a single value.
        deviation: standard deviation of the values; 0 for a single value.
        count: how many values.
    """

    mean: float
    half_width: float
    deviation: float
    count: int


def confidence_interval(values: Sequence[float]) -> ConfidenceInterval:
    """The mean of independent values, one a seed, with Student's t interval."""
    if len(values) < 2:
        return ConfidenceInterval(fmean(values), 0.0, 0.0, 1)
    deviation = stdev(values)
    quantile = _T_975[min(len(values) - 1, len(_T_975)) - 1]
    return ConfidenceInterval(fmean(values), quantile * deviation / sqrt(len(values)), deviation, len(values))
