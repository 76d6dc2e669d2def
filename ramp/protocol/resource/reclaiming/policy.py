"""What the administrator of a resource has set about cores that buyers let it take back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.instant import SECOND, Duration
from ramp.model.request import ReclaimTerms
from ramp.protocol.reclaiming.asking import Precedence
from ramp.protocol.timing import Timing

ON_THE_WAY: Final[Duration] = 5 * SECOND
"""So much longer than the notice it is until the cores go: the bank has to have it in time, by its own clock."""

DISCOUNT_MAX: Final = 99
"""Highest discount in percent; what is sold is never free."""


@dataclass(frozen=True, slots=True)
class ReclaimPolicy:
    """When cores are taken back, and what the right is worth.

    Attributes:
        precedence: when the resource takes cores back by itself.
        discount: by so many percent the prices are lower for a unit that grants a right of use, 0 to 99.
        compensation_max: the most that it pays on top of a refund by itself, credits per core hour; None for its
            minimum price. A right that asks more is worth nothing to it.
    """

    precedence: Precedence = Precedence.RUNNING
    discount: int = 0
    compensation_max: int | None = None

    def price(self, price: int, *, granted: bool) -> int:
        """A price, whole credits per core hour, rounded up, for a slot whose right is of use or not."""
        return max(1, -(-price * (100 - self.discount) // 100)) if granted else price


def is_of_use(
    right: ReclaimTerms | None,
    cores: int,
    lasts: Duration,
    *,
    unit: int,
    compensation_max: int,
    timing: Timing,
) -> bool:
    """Whether a seller could ever take something back by a right, at a compensation that it would pay.

    Args:
        right: as the buyer grants it, or None.
        cores: of the slot.
        lasts: how long the slot stands from now on, or from its start.
        unit: cores that the machine gives and takes together, at least 1.
        compensation_max: the most that the seller pays, credits per core hour.
        timing: the protocol's limits.
    """
    if right is None or right.compensation > compensation_max or cores - right.least < unit:
        return False
    return taking_lasts(right, timing) < lasts


def taking_lasts(right: ReclaimTerms, timing: Timing) -> Duration:
    """How long before the end of a slot a seller has to begin at the latest: notice, its way, and time to post it."""
    return right.notice + ON_THE_WAY + timing.amendment_window
