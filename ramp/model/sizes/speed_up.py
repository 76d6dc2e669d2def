"""Speed-up laws: the run time of an application by its number of processors.

A law gives run times in a unit of its own; only their ratios matter for a job with a known run time at one size. The
same formulas serve simulations, in floating point, and the market, whose parties must find the same time to the
microsecond: there a law is a text such as `amdahl:0.05`, and is computed in fractions.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Generic, TypeVar

from ramp.errors import WorkloadError

Number = TypeVar("Number", float, Fraction)

POINTS_MAX: Final = 32
"""Maximum number of points of a table in the market."""

RIGHT: Final = "amdahl:SERIAL_SHARE, downey:AVERAGE:SIGMA or table:CORES=TIME,..., such as amdahl:0.05"
"""Forms of a law."""

_DECIMAL: Final = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class AmdahlLaw(Generic[Number]):
    """T(p) = serial + parallel / p, two run times (G. M. Amdahl, AFIPS 1967)."""

    serial: Number
    parallel: Number

    def __post_init__(self) -> None:
        if self.serial < 0 or self.parallel < 0 or self.serial + self.parallel <= 0:
            raise WorkloadError(f"Amdahl's law with {self.serial} serial and {self.parallel} parallel: no run time")

    def run_time(self, processors: int) -> Number:
        return self.serial + self.parallel / processors


@dataclass(frozen=True, slots=True)
class DowneyLaw(Generic[Number]):
    """Downey's model: an average parallelism and how much it varies.

    Source: A. B. Downey, "A model for speedup of parallel programs", UC Berkeley CSD-97-933, 1997. The run time is in
    units of that with one processor.

    Attributes:
        average: average parallelism, at least 1.
        variance: its coefficient of variation squared, in effect (Downey's sigma); 0 = ideal up to the average.
    """

    average: Number
    variance: Number

    def __post_init__(self) -> None:
        if self.average < 1 or self.variance < 0:
            raise WorkloadError(
                f"Downey's law: got average {self.average} and variance {self.variance}, expected at least 1 and 0"
            )

    def speed_up(self, processors: int) -> Number:
        """Speed against one processor."""
        n, average, variance = processors, self.average, self.variance
        if variance <= 1:
            if n <= average:
                return average * n / (average + variance / 2 * (n - 1))
            if n <= 2 * average - 1:
                return average * n / (variance * ((2 * average - 1) / 2) + n * (1 - variance / 2))
            return average
        if n <= average + average * variance - variance:
            return n * average * (variance + 1) / (variance * (n + average - 1) + average)
        return average

    def run_time(self, processors: int) -> Number:
        return 1 / self.speed_up(processors)


@dataclass(frozen=True, slots=True)
class TableLaw(Generic[Number]):
    """Measured run times, with straight lines between them.

    Below the first point the run time is inversely proportional to the processors, for lack of a measurement; beyond
    the last it is constant.

    Attributes:
        processors: ascending, at least one.
        times: run time with each, above 0.
    """

    processors: tuple[int, ...]
    times: tuple[Number, ...]

    def __post_init__(self) -> None:
        if not self.processors or len(self.processors) != len(self.times):
            raise WorkloadError("a table of run times needs one time for each number of processors")
        ascending = all(one < other for one, other in zip(self.processors, self.processors[1:], strict=False))
        if not ascending or self.processors[0] < 1 or min(self.times) <= 0:
            raise WorkloadError("a table of run times needs ascending numbers of processors from 1 and times above 0")

    def run_time(self, processors: int) -> Number:
        known, times = self.processors, self.times
        place = bisect_right(known, processors)
        if place == 0:
            return times[0] * known[0] / processors
        if place == len(known):
            return times[-1]
        gained = (times[place] - times[place - 1]) * (processors - known[place - 1])
        return times[place - 1] + gained / (known[place] - known[place - 1])


Law = AmdahlLaw[Fraction] | DowneyLaw[Fraction] | TableLaw[Fraction]
"""A law in exact numbers."""


@lru_cache(maxsize=256)
def law_of(text: str) -> Law:
    """Return the law that a text names, in exact numbers.

    Args:
        text: `amdahl:SHARE` (of the run time with one core that stays serial, 0 to 1), `downey:AVERAGE:SIGMA`, or
            `table:CORES=TIME,...` (cores ascending, times in any unit and never growing); decimals of up to six places.

    Raises:
        WorkloadError: if it names no law, stating the expected form.
    """
    name, _, rest = text.partition(":")
    try:
        return _law(name, rest)
    except WorkloadError as error:
        raise WorkloadError(f"invalid speed-up law {text[:60]!r}: {error.reason}; use {RIGHT}") from error


def _law(name: str, rest: str) -> Law:
    match name:
        case "amdahl":
            serial = _decimal(rest)
            if serial > 1:
                raise WorkloadError(f"serial share: got {rest}, expected 0 to 1")
            return AmdahlLaw(serial, 1 - serial)
        case "downey":
            average, _, variance = rest.partition(":")
            return DowneyLaw(_decimal(average), _decimal(variance))
        case "table":
            return _table(rest)
        case _:
            raise WorkloadError("unknown law")


def _table(text: str) -> TableLaw[Fraction]:
    points = [point.partition("=") for point in text.split(",")]
    if len(points) > POINTS_MAX:
        raise WorkloadError(f"too many points: got {len(points)}, expected at most {POINTS_MAX}")
    if wrong := [cores for cores, _, _ in points if not _COUNT.fullmatch(cores)]:
        raise WorkloadError(f"invalid number of cores: got {wrong[0]!r}")
    times = tuple(_decimal(time) for _, _, time in points)
    if any(later > earlier for earlier, later in itertools.pairwise(times)):
        raise WorkloadError("times must not rise with the number of cores")
    return TableLaw(tuple(int(cores) for cores, _, _ in points), times)


def _decimal(text: str) -> Fraction:
    if not _DECIMAL.fullmatch(text):
        raise WorkloadError(f"got {text[:20]!r}, expected a number such as 0.05")
    return Fraction(text)
