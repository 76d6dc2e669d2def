"""What the administrator of a resource has set about cores that buyers let it take back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.protocol.reclaiming.asking import Precedence

DISCOUNT_MAX: Final = 99
"""Highest discount in percent; what is sold is never free."""


@dataclass(frozen=True, slots=True)
class ReclaimPolicy:
    """When cores are taken back, and what the right is worth.

    Attributes:
        precedence: when the resource takes cores back by itself.
        discount: by so many percent the prices are lower for a unit that grants the right, 0 to 99.
    """

    precedence: Precedence = Precedence.RUNNING
    discount: int = 0

    def price(self, price: int, *, granted: bool) -> int:
        """A price, whole credits per core hour, rounded up, for a unit that grants the right or does not."""
        return max(1, -(-price * (100 - self.discount) // 100)) if granted else price
