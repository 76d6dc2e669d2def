"""Orders: what a user asks the bank to pay together, posted whole or not at all.

An order names the agreements of one request. Their money is set aside together (one pending transfer for each line),
and together it is posted or given up. Sources: paper section 5.1.2 (payment of the units of a request); the words of
the states are those of the transfers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.contents import OrderLine
from ramp.model.instant import Duration, Instant
from ramp.model.probable_start import QUEUE_WAIT_MAX

__all__ = ["ORDER_LINES_MAX", "VOID_REMEMBERED_MAX", "Order", "OrderLine", "OrderState"]

ORDER_LINES_MAX: Final = 1000
"""Most agreements in one order."""

VOID_REMEMBERED_MAX: Final[Duration] = QUEUE_WAIT_MAX
"""How far ahead the deadline of an order that is not here yet may lie for its void to be remembered."""


class OrderState(StrEnum):
    """Where an order is: reserved is the only state that is left again."""

    RESERVED = "reserved"
    POSTED = "posted"
    VOIDED = "voided"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Order:
    """One order in its present state.

    Attributes:
        order_id: the user's name for it, its idempotency key.
        user: the account that is debited.
        lines: what is paid; none in the answer to the void of an order that is not here.
        valid_until: from this instant on it can no longer be posted.
        entered_at: when the bank entered it.
        state: reserved, posted, voided or refused.
        settled_at: when it was posted, voided or refused; None while it is reserved.
        code: machine-readable reason of a void or refusal, else empty.
        reason: the sentence for people, one line, else empty.
        countersigned: agreements whose countersigned agreement is there, in the order of the lines.
    """

    order_id: str
    user: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant
    entered_at: Instant
    state: OrderState
    settled_at: Instant | None = None
    code: str = ""
    reason: str = ""
    countersigned: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Sum of the lines in minor units."""
        return sum(line.cost for line in self.lines)

    def line(self, agreement_id: str) -> OrderLine | None:
        """The line of an agreement, or None."""
        return next((line for line in self.lines if line.agreement_id == agreement_id), None)


@dataclass(frozen=True, slots=True)
class RememberedVoid:
    """A void that came before its order: kept until its deadline, and no entry, since it moves nothing.

    Attributes:
        order_id: which order it voids.
        user: whose; another user's order of that name is not meant.
        valid_until: when it is forgotten.
        voided_at: when it came.
        code: machine-readable reason.
        reason: the sentence for people.
        evidence: the signed message on which it rests, or empty.
    """

    order_id: str
    user: str
    valid_until: Instant
    voided_at: Instant
    code: str
    reason: str
    evidence: str = ""
