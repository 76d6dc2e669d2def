"""Which sizes a job may have, and who chooses them.

The classes are those of D. G. Feitelson and L. Rudolph, "Toward convergence in job schedulers for parallel
supercomputers", JSSPP 1996.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ramp.errors import WorkloadError


class JobClass(enum.StrEnum):
    """Who chooses a job's size, and when."""

    RIGID = "rigid"
    """The user, for good."""
    MOLDABLE = "moldable"
    """The scheduler, at the start, for good."""
    MALLEABLE = "malleable"
    """The scheduler, also while the job runs."""
    EVOLVING = "evolving"
    """The application, while it runs; the scheduler may change it as well."""

    @property
    def changes_while_running(self) -> bool:
        """Whether a running job of this class may get another size."""
        return self in {JobClass.MALLEABLE, JobClass.EVOLVING}


class Allowed(enum.StrEnum):
    """Which of the sizes between minimum and maximum a job can use."""

    ANY = "any"
    POWERS_OF_TWO = "powers of two"
    MULTIPLES = "multiples"
    """Of `Sizes.step`."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a job may have, in processors.

    Attributes:
        minimum: smallest size.
        preferred: the size its user would choose for a rigid job.
        maximum: largest useful size.
        allowed: which sizes in between.
        step: only its multiples are allowed, where `allowed` says so.
    """

    minimum: int
    preferred: int
    maximum: int
    allowed: Allowed = Allowed.ANY
    step: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.preferred <= self.maximum:
            raise WorkloadError(
                f"sizes: got {self.minimum}, {self.preferred}, {self.maximum}, expected a minimum of at least 1, "
                "a preferred size and a maximum, ascending"
            )
        if self.step < 1:
            raise WorkloadError(f"step: got {self.step}, expected at least 1")
        if self.most_of(self.maximum) is None:
            raise WorkloadError(f"sizes: no allowed size ({self.allowed}) from {self.minimum} to {self.maximum}")

    def __str__(self) -> str:
        words = f"{self.minimum} to {self.maximum}"
        if self.allowed is Allowed.MULTIPLES:
            return f"{words}, multiples of {self.step}"
        return words if self.allowed is Allowed.ANY else f"{words}, {self.allowed}"

    def __contains__(self, size: int) -> bool:
        return self.most_of(size) == size

    def most_of(self, offered: int) -> int | None:
        """Return the largest allowed size that is not above `offered`, or None where that is below the minimum."""
        size = min(offered, self.maximum)
        if size < self.minimum:
            return None
        if self.allowed is Allowed.POWERS_OF_TWO:
            size = 1 << (size.bit_length() - 1)
        elif self.allowed is Allowed.MULTIPLES:
            size -= size % self.step
        return size if size >= self.minimum else None

    @property
    def least(self) -> int:
        """The smallest allowed size: the minimum, or the first allowed one above it."""
        if self.allowed is Allowed.POWERS_OF_TWO:
            return 1 << (self.minimum - 1).bit_length()
        if self.allowed is Allowed.MULTIPLES:
            return -(-self.minimum // self.step) * self.step
        return self.minimum
