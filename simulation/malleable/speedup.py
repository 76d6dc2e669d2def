"""How long an application runs with how many processors.

Laws give run times in a unit of their own (seconds where they come from measurements); only ratios matter to a job
whose run time is known at one size. With more processors than help, nothing more is gained.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, Protocol

from ramp.errors import WorkloadError


class SpeedUpLaw(Protocol):
    """The run time of an application over its processors."""

    def run_time(self, processors: int) -> float:
        """Run time with so many processors, at least 1; above 0, in the law's own unit."""
        ...


@dataclass(frozen=True, slots=True)
class AmdahlLaw:
    """T(p) = serial + parallel / p (G. M. Amdahl, AFIPS 1967).

    Attributes:
        serial: run time that no processor shortens.
        parallel: run time that all share.
    """

    serial: float
    parallel: float

    def __post_init__(self) -> None:
        if self.serial < 0 or self.parallel < 0 or self.serial + self.parallel <= 0:
            raise WorkloadError(f"Amdahl's law with {self.serial} serial and {self.parallel} parallel: no run time")

    def run_time(self, processors: int) -> float:
        """See `SpeedUpLaw`."""
        return self.serial + self.parallel / processors


@dataclass(frozen=True, slots=True)
class DowneyLaw:
    """Downey's model: an average parallelism and how much it varies.

    Source: A. B. Downey, "A model for speedup of parallel programs", UC Berkeley CSD-97-933, 1997. The run time is in
    units of that with one processor.

    Attributes:
        average: average parallelism, at least 1.
        variance: its coefficient of variation squared, in effect (Downey's sigma); 0 = ideal up to the average.
    """

    average: float
    variance: float

    def __post_init__(self) -> None:
        if self.average < 1 or self.variance < 0:
            raise WorkloadError(
                f"Downey's law with average {self.average} and variance {self.variance}: at least 1 and 0 are wanted"
            )

    def speed_up(self, processors: int) -> float:
        """Speed against one processor."""
        n, average, variance = processors, self.average, self.variance
        if variance <= 1:
            if n <= average:
                return average * n / (average + variance / 2 * (n - 1))
            if n <= 2 * average - 1:
                return average * n / (variance * (average - 0.5) + n * (1 - variance / 2))
            return average
        if n <= average + average * variance - variance:
            return n * average * (variance + 1) / (variance * (n + average - 1) + average)
        return average

    def run_time(self, processors: int) -> float:
        """See `SpeedUpLaw`."""
        return 1 / self.speed_up(processors)


@dataclass(frozen=True, slots=True)
class TableLaw:
    """Measured run times, with straight lines between them.

    Below the first point the run time grows as the processors are fewer (no measurement says better); beyond the last
    it stays.

    Attributes:
        processors: ascending, at least one.
        times: run time with each, above 0.
    """

    processors: tuple[int, ...]
    times: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.processors or len(self.processors) != len(self.times):
            raise WorkloadError("a table of run times wants as many processors as times, and at least one")
        ascending = all(one < other for one, other in zip(self.processors, self.processors[1:], strict=False))
        if not ascending or self.processors[0] < 1 or min(self.times) <= 0:
            raise WorkloadError("a table of run times wants ascending processors from 1 and times above 0")

    def run_time(self, processors: int) -> float:
        """See `SpeedUpLaw`."""
        known, times = self.processors, self.times
        place = bisect_right(known, processors)
        if place == 0:
            return times[0] * known[0] / processors
        if place == len(known):
            return times[-1]
        share = (processors - known[place - 1]) / (known[place] - known[place - 1])
        return times[place - 1] + share * (times[place] - times[place - 1])


def amdahl_through(one: tuple[int, float], other: tuple[int, float]) -> AmdahlLaw:
    """Amdahl's law through two measurements (processors, run time).

    Raises:
        WorkloadError: they are of the same number of processors, or no such law goes through them.
    """
    (few, long), (many, short) = sorted((one, other))
    if few == many or few < 1:
        raise WorkloadError(f"Amdahl's law through {one} and {other}: two numbers of processors are wanted")
    parallel = (long - short) / (1 / few - 1 / many)
    return AmdahlLaw(short - parallel / many, parallel)


GADGET_2: Final = amdahl_through((2, 600.0), (46, 240.0))
"""The n-body code GADGET-2, seconds: nearly ten minutes on 2 machines, four at best, taken to be at its maximum of 46.

Source: J. Buisson and others, CoreGRID TR-0092, 2007, section 6.1; the curve itself (figure 6) is lost in our copy.
"""
NAS_FT: Final = amdahl_through((2, 120.0), (32, 60.0))
"""The NAS benchmark FT, seconds: almost two minutes on 2 machines, one at best, taken to be at its maximum of 32."""
