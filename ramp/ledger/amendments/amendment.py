"""What the bank has decided of a proposed amendment: it is posted, or it never will be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ramp.model.instant import Instant


@dataclass(frozen=True, slots=True)
class AmendmentTerms:
    """What an amendment asks of the ledger.

    Attributes:
        agreement_id: whose payment is given back in part.
        number: of the proposal.
        previous: digest of the state that it changes.
        digest: of the state that it makes.
        user: who must have paid.
        resource: who must have been paid.
        amount: minor units to be given back.
        valid_until: from this instant on it can no longer be posted.
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
    """An amendment that was decided, once and for good.

    Attributes:
        agreement_id: of which agreement.
        number: of the proposal.
        digest: of the state that it has made; empty where it is void.
        amount: minor units that were given back; 0 where it is void, or adds to the slot.
        decided_at: when it was posted, or voided.
        code: why it is void, empty where it is posted.
        reason: the same as a sentence, one line.
        charge: minor units that were paid for what it adds.
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
        """Whether it holds."""
        return not self.code


def given_back(decided: Iterable[DecidedAmendment]) -> int:
    """What amendments have given back together, less what was paid for what they add, in minor units."""
    return sum(each.amount - each.charge for each in decided)


def standing_digest(decided: Sequence[DecidedAmendment]) -> str:
    """Digest of the state that the amendment posted last has made; empty where none was posted.

    Args:
        decided: of an agreement's amendments, by number.
    """
    return next((each.digest for each in reversed(decided) if each.is_posted), "")
