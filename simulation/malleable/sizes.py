"""Which sizes a job may have."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a job may have, in processors.

    Attributes:
        minimum: smallest size.
        preferred: the size its user would choose for a rigid job.
        maximum: largest useful size.
        powers_of_two: whether only powers of two in between are allowed.
    """

    minimum: int
    preferred: int
    maximum: int
    powers_of_two: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.preferred <= self.maximum:
            raise WorkloadError(
                f"sizes: got {self.minimum}, {self.preferred}, {self.maximum}, expected a minimum of at least 1, "
                "a preferred size and a maximum, ascending"
            )
        if self.most_of(self.maximum) is None:
            raise WorkloadError(f"sizes: no power of two from {self.minimum} to {self.maximum}")

    def __str__(self) -> str:
        words = f"{self.minimum} to {self.maximum}"
        return f"{words}, powers of two" if self.powers_of_two else words

    def __contains__(self, size: int) -> bool:
        return self.most_of(size) == size

    def most_of(self, offered: int) -> int | None:
        """Return the largest allowed size that is not above `offered`, or None where that is below the minimum."""
        size = min(offered, self.maximum)
        if size < self.minimum:
            return None
        if self.powers_of_two:
            size = 1 << (size.bit_length() - 1)
        return size if size >= self.minimum else None

    @property
    def least(self) -> int:
        """The smallest allowed size: the minimum, or the first allowed one above it."""
        if self.powers_of_two:
            return 1 << (self.minimum - 1).bit_length()
        return self.minimum
