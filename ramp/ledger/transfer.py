"""Transfers: one amount from one account to another, and its state.

A transfer is posted at once, or first pending (its amount is reserved in escrow) and then posted or voided. These are
TigerBeetle's words; the two-phase commit of the auction uses others, to keep the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.agreement import CHANGE_MARK
from ramp.model.contents import TransferKind
from ramp.model.instant import Instant


class TransferState(StrEnum):
    """State of a transfer; only a pending transfer changes again."""

    PENDING = "pending"
    POSTED = "posted"
    VOIDED = "voided"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer in its present state.

    Attributes:
        transfer_id: `transfer_id_of(agreement_id, kind)`.
        debit_account: the payer.
        credit_account: the payee.
        amount: minor units, above zero.
        agreement_id: its agreement; a deposit's reference; or `change_key` for the payment or refund of a change of
            size. With `kind` it is the idempotency key.
        posted_at: when the money moved, or None.
        voided_at: when it was voided, or None.
        memo: one line for people.
        order_id: the order of a payment and its refunds; empty for a deposit.
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
    memo: str = ""
    order_id: str = ""

    @property
    def state(self) -> TransferState:
        if self.posted_at is not None:
            return TransferState.POSTED
        return TransferState.PENDING if self.voided_at is None else TransferState.VOIDED

    @property
    def settled_at(self) -> Instant | None:
        return self.voided_at if self.posted_at is None else self.posted_at


def transfer_id_of(agreement_id: str, kind: TransferKind) -> str:
    """Return the id of an agreement's transfer of a kind.

    It is derived, so that a repeat after a crash names the same transfer, and each kind exists once.
    """
    return f"{kind}:{agreement_id}"


def agreement_of(transfer: Transfer) -> str:
    """Return the agreement of a refund, the key of a payment, or a deposit's reference."""
    if transfer.kind is TransferKind.REFUND:
        return transfer.agreement_id.partition(CHANGE_MARK)[0]
    return transfer.agreement_id
