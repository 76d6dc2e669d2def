"""How long an application runs with how many processors, in simulations.

Laws give run times in a unit of their own (seconds where they come from measurements); only ratios matter to a job
whose run time is known at one size. With more processors than help, nothing more is gained. The formulas are
`ramp.model.sizes.speed_up`'s, which the market has too.
"""

from __future__ import annotations

from typing import Final, Protocol

from ramp.errors import WorkloadError
from ramp.model.sizes.speed_up import AmdahlLaw, DowneyLaw, TableLaw

__all__ = ["GADGET_2", "NAS_FT", "AmdahlLaw", "DowneyLaw", "SpeedUpLaw", "TableLaw", "amdahl_through"]


class SpeedUpLaw(Protocol):
    """The run time of an application over its processors."""

    def run_time(self, processors: int) -> float:
        """Return the run time with a number of processors, at least 1; above 0, in the law's own unit."""
        ...


def amdahl_through(one: tuple[int, float], other: tuple[int, float]) -> AmdahlLaw[float]:
    """Return Amdahl's law through two measurements (processors, run time).

    Raises:
        WorkloadError: they are of the same number of processors, or no such law goes through them.
    """
    (few, long), (many, short) = sorted((one, other))
    if few == many or few < 1:
        raise WorkloadError(f"Amdahl's law: got {one} and {other}, expected two different numbers of processors")
    parallel = (long - short) / (1 / few - 1 / many)
    return AmdahlLaw(short - parallel / many, parallel)


GADGET_2: Final = amdahl_through((2, 600.0), (46, 240.0))
"""The n-body code GADGET-2, seconds: nearly ten minutes on 2 machines, four at best, taken to be at its maximum of 46.

Source: J. Buisson and others, CoreGRID TR-0092, 2007, section 6.1; the curve itself (figure 6) is lost in our copy.
"""
NAS_FT: Final = amdahl_through((2, 120.0), (32, 60.0))
"""The NAS benchmark FT, seconds: almost two minutes on 2 machines, one at best, taken to be at its maximum of 32."""
