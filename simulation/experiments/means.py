"""Means with their 95 % confidence intervals, of some values or of the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, pstdev, stdev
from typing import TYPE_CHECKING, Any, Final

from simulation.experiments.result import Rows, grouped

if TYPE_CHECKING:
    from simulation.experiments.study import Found

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """A table of means over the rows that agree in some columns; rows without a value are left out of its mean.

    Attributes:
        table: whose rows they are.
        by: columns in which rows must agree.
        of: columns whose means are taken.
        digits: to which means and spreads are rounded.
        spread: ending of the column beside each mean: `_half` of its 95 % interval, or `_sd`, the standard deviation of
            the values; empty: no such column.
    """

    table: str = "runs"
    by: tuple[str, ...]
    of: tuple[str, ...]
    digits: int = 3
    spread: str = "_half"

    def __call__(self, found: Found) -> Rows:
        """The table."""
        return self.over(found[self.table])

    def over(self, rows: Rows) -> list[dict[str, Any]]:
        """The table of the means of these rows."""
        table = []
        for group, mine in grouped(rows, *self.by).items():
            line: dict[str, Any] = dict(zip(self.by, group, strict=True))
            for measure in self.of:
                line |= self._entry(measure, [row[measure] for row in mine if row[measure] not in (None, "")])
            table.append(line)
        return table

    def _entry(self, measure: str, values: Sequence[float]) -> dict[str, float | None]:
        entry: dict[str, float | None] = {measure: round(fmean(values), self.digits) if values else None}
        if self.spread and values:
            spread = pstdev(values) if self.spread == "_sd" else confidence_interval(values).half_width
            entry[measure + self.spread] = round(spread, self.digits)
        elif self.spread:
            entry[measure + self.spread] = None
        return entry
