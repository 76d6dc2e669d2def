"""The bank's final decision about a proposed amendment: posted or void."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class AmendmentTerms:
    """The terms of an amendment that refunds a part of a payment.

    Attributes:
        agreement_id: of the payment.
        number: of the proposal.
        previous: digest of the state that it changes.
        digest: of the new state.
        user: must have paid.
        resource: must have been paid.
        amount: refund in minor units.
        valid_until: first instant at which it can no longer be posted.
    """

    agreement_id: str
    number: int
    previous: str
    digest: str
    user: str
    resource: str
    amount: int
    valid_until: Instant


@dataclass(frozen=True, slots=True)
class DecidedAmendment:
    """An amendment after its final decision.

    Attributes:
        number: of the proposal.
        digest: of the new state; empty if it is void.
        amount: refund in minor units; 0 if it is void, or adds to the slot.
        code: why it is void; empty if it is posted.
        reason: the same as a sentence, one line.
        charge: minor units paid for an addition.
    """

    agreement_id: str
    number: int
    digest: str
    amount: int
    decided_at: Instant
    code: str = ""
    reason: str = ""
    charge: int = 0

    @property
    def is_posted(self) -> bool:
        return not self.code


def given_back(decided: Iterable[DecidedAmendment]) -> int:
    """Return the refunds of amendments less the payments for additions, in minor units."""
    return sum(each.amount - each.charge for each in decided)


def standing_digest(decided: Sequence[DecidedAmendment]) -> str:
    """Return the digest of the last posted state, or the empty string.

    Args:
        decided: an agreement's amendments, by number.
    """
    return next((each.digest for each in reversed(decided) if each.is_posted), "")
