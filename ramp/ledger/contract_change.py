"""Changes of a paid agreement, as the ledger knows them: grounds and final decision.

A change moves one signed amount between the two parties of an agreement's payment: above zero the buyer pays more (an
addition, which a line of an order pays), below zero the seller returns something. A terminal change ends the agreement
and returns all that is left of its payments: a cancellation, a seller's failure, or an order of the market's keeper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ramp.ledger.entry import transfer_id_of
from ramp.model.agreement import TERMINAL, change_key
from ramp.model.contents import TransferKind
from ramp.model.instant import Instant


class Grounds(StrEnum):
    """Who has justified a change."""

    BOTH = "both"
    """Both parties have signed it."""
    BUYER = "buyer"
    """The buyer alone has signed it, which suffices to end an agreement before its slot begins."""
    SELLER = "seller"
    """The seller has failed, on its own word."""
    KEEPER = "keeper"
    """The keeper of the market has ordered it."""


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A change after its final decision.

    Attributes:
        number: of the proposal, or `TERMINAL`.
        grounds: who has justified it.
        digest: of the new state; empty if it is void or terminal.
        amount: minor units that the buyer paid (above zero) or got back (below); 0 if it is void.
        code: why it is void; empty if it is posted.
        reason: the same as a sentence, one line.
    """

    agreement_id: str
    number: int
    grounds: Grounds
    digest: str
    amount: int
    decided_at: Instant
    code: str = ""
    reason: str = ""

    @property
    def is_posted(self) -> bool:
        return not self.code

    @property
    def is_terminal(self) -> bool:
        return self.number == TERMINAL

    @property
    def transfer_id(self) -> str:
        """The transfer of a posted change."""
        kind = TransferKind.PAYMENT if self.amount > 0 else TransferKind.REFUND
        return transfer_id_of(change_key(self.agreement_id, self.number), kind)


def ended(decided: Iterable[DecidedChange]) -> DecidedChange | None:
    """Return the change that has ended an agreement, or None."""
    return next((each for each in decided if each.is_terminal), None)


def standing_digest(decided: Sequence[DecidedChange]) -> str:
    """Return the digest of the last posted state, or the empty string.

    Args:
        decided: an agreement's changes, by number.
    """
    return next((each.digest for each in reversed(decided) if each.digest), "")
