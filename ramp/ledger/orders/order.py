"""Orders: payments of a user that are posted as a whole or not at all.

An order names the agreements of one request (paper section 5.1.2). Their money is reserved together, with one pending
transfer a line, and posted or voided together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.contents import OrderLine, OrderState
from ramp.model.instant import Duration, Instant
from ramp.model.probable_start import QUEUE_WAIT_MAX

ORDER_LINES_MAX: Final = 1000
"""Maximum agreements in one order."""

VOID_REMEMBERED_MAX: Final[Duration] = QUEUE_WAIT_MAX
"""Maximum time to the deadline of an unknown order whose void is remembered."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order in its present state.

    Attributes:
        order_id: the idempotency key.
        user: the account that is debited.
        lines: the payments; empty in the answer to the void of an unknown order.
        valid_until: first instant at which it can no longer be posted.
        settled_at: when it was posted, voided or refused; None while it is reserved.
        code: machine-readable reason of a void or refusal, else empty.
        reason: the sentence for people, one line, else empty.
        countersigned: agreements that have arrived countersigned, in the order of the lines.
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

    def line(self, agreement_id: str) -> OrderLine:
        """Return the line of an agreement of the order."""
        return next(line for line in self.lines if line.agreement_id == agreement_id)


@dataclass(frozen=True, slots=True)
class RememberedVoid:
    """A void that came before its order; kept until its deadline, and not an entry, as it moves nothing.

    Attributes:
        order_id: of the order.
        user: of the order; another user's order of that id is not voided.
        valid_until: when it is forgotten.
        code: machine-readable reason.
        reason: the sentence for people.
        evidence: the signed message, or empty.
    """

    order_id: str
    user: str
    valid_until: Instant
    voided_at: Instant
    code: str
    reason: str
    evidence: str = ""
