"""Transfers: one amount from one account to another, and what has become of it.

A transfer is posted at once, or pending first (its amount is reserved in escrow) and then posted or voided. These are
TigerBeetle's words; the two-phase commit of the auction has its own, so that the two cannot be mixed up.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.agreement import CHANGE_MARK
from ramp.model.instant import Instant


class TransferKind(StrEnum):
    """What a transfer is for; a rebate gives a part of a payment back, by an amendment."""

    PAYMENT = "payment"
    REFUND = "refund"
    DEPOSIT = "deposit"
    REBATE = "rebate"


class TransferState(StrEnum):
    """Where a transfer is: pending is the only state that is left again."""

    PENDING = "pending"
    POSTED = "posted"
    VOIDED = "voided"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer as it stands now.

    Attributes:
        transfer_id: `transfer_id_of(agreement_id, kind)`.
        debit_account: who gives.
        credit_account: who gets.
        amount: minor units, above zero.
        agreement_id: the agreement it belongs to, a deposit's reference, or of a rebate, and of a payment of what an
            amendment adds, `amendment_key`; with `kind` it is the idempotency key.
        kind: payment, refund, deposit or rebate.
        entered_at: when it was entered into the ledger.
        posted_at: when the money moved, or None.
        voided_at: when it was given up, or None.
        reverses: the transfer that a refund gives back, else None.
        memo: one line for people.
        order_id: the order that a payment (and what is given back of it) belongs to; empty for a deposit.
    """

    transfer_id: str
    debit_account: str
    credit_account: str
    amount: int
    agreement_id: str
    kind: TransferKind
    entered_at: Instant
    posted_at: Instant | None = None
    voided_at: Instant | None = None
    reverses: str | None = None
    memo: str = ""
    order_id: str = ""

    @property
    def state(self) -> TransferState:
        """Pending, posted or voided."""
        if self.posted_at is not None:
            return TransferState.POSTED
        return TransferState.PENDING if self.voided_at is None else TransferState.VOIDED

    @property
    def settled_at(self) -> Instant | None:
        """When it was posted or voided, or None while it is pending."""
        return self.voided_at if self.posted_at is None else self.posted_at


def transfer_id_of(agreement_id: str, kind: TransferKind) -> str:
    """The id of an agreement's transfer of a kind.

    It is derived, not drawn, so that a repeat after a crash names the same transfer and there is only one of a kind.
    """
    return f"{kind}:{agreement_id}"


def agreement_of(transfer: Transfer) -> str:
    """The agreement that a payment, or what comes back of it, belongs to; of a deposit its reference."""
    if transfer.kind is TransferKind.REBATE:
        return transfer.agreement_id.rpartition(CHANGE_MARK)[0]
    return transfer.agreement_id
