"""What the bank knows of a reclamation: when it had notice of it, and whether it is posted, or never will be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ramp.ledger.amendments.amendment import DecidedAmendment
from ramp.model.instant import Duration, Instant


@dataclass(frozen=True, slots=True)
class ReclamationTerms:
    """What a reclamation asks of the ledger.

    Attributes:
        agreement_id: whose payment is given back in part.
        number: of the reclamation.
        previous: digest of the state that it changes.
        of_agreement: whether that is the slot as it was bought.
        digest: of the state that it makes.
        user: who must have paid.
        resource: who must have been paid.
        refund: minor units to be given back of the payment.
        compensation: minor units that the resource pays on top.
        notice: how long before it takes effect it must have come.
        effective_at: before this instant it is not posted.
        valid_until: from this instant on it can no longer be posted.
    """

    agreement_id: str
    number: int
    previous: str
    of_agreement: bool
    digest: str
    user: str
    resource: str
    refund: int
    compensation: int
    notice: Duration
    effective_at: Instant
    valid_until: Instant


@dataclass(frozen=True, slots=True)
class KnownReclamation:
    """A reclamation that was noticed, and what has become of it.

    Attributes:
        agreement_id: of which agreement.
        number: of the reclamation.
        previous: digest of the state that it changes.
        digest: of the state that it makes.
        refund: minor units that it gives back of the payment.
        compensation: minor units that it pays on top.
        effective_at: before this instant it is not posted.
        valid_until: from this instant on it can no longer be posted.
        noticed_at: when the bank had it.
        decided_at: when it was posted, or voided; None while it is open.
        code: why it is void; empty while it is open, and where it is posted.
        reason: the same as a sentence, one line.
    """

    agreement_id: str
    number: int
    previous: str
    digest: str
    refund: int
    compensation: int
    effective_at: Instant
    valid_until: Instant
    noticed_at: Instant
    decided_at: Instant | None = None
    code: str = ""
    reason: str = ""

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided of it."""
        return self.decided_at is None

    @property
    def is_posted(self) -> bool:
        """Whether it holds."""
        return self.decided_at is not None and not self.code


def taken_back(known: Iterable[KnownReclamation]) -> int:
    """What reclamations have given back of a payment together, in minor units; compensations are not of it."""
    return sum(each.refund for each in known if each.is_posted)


def standing_digest(decided: Iterable[DecidedAmendment], known: Iterable[KnownReclamation]) -> str:
    """Digest of the state that the change posted last has made; empty where none was posted.

    Amendments follow each other by their numbers, and so do reclamations; which of the two last ones is the later is
    told by what the reclamation has changed, not by clocks.

    Args:
        decided: of an agreement's amendments, by number.
        known: of its reclamations, by number.
    """
    amended = next((each.digest for each in reversed(tuple(decided)) if each.is_posted), "")
    reclaimed = {each.digest: each.previous for each in known if each.is_posted}
    if not reclaimed:
        return amended
    last = next(reversed(reclaimed))
    since = last
    while since in reclaimed:
        since = reclaimed[since]
    return last if not amended or since == amended else amended
