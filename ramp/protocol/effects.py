"""What a pure machine asks its host to do, in order.

The order of the list is the contract: a `Persist` is durable before any later effect is carried out, so nothing leaves
a party that its journal does not know. `AskPlugin` and `AskLedger` are carried out at their place in the order and
answered by an event that the host hands back to the party next.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, Signed
from ramp.model.instant import Instant
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot
from ramp.protocol.progress import Progress
from ramp.protocol.records import Record


@dataclass(frozen=True, slots=True)
class Send:
    """Give a message to the network; it may be lost, doubled or late."""

    message: Message


@dataclass(frozen=True, slots=True)
class Persist:
    """Make a record durable in the party's journal before anything later happens."""

    record: Record


@dataclass(frozen=True, slots=True)
class QuoteSlots:
    """Ask the plug-in what each unit would find; answered by `SlotsQuoted`."""

    call_id: str
    units: tuple[RequestUnit, ...]


@dataclass(frozen=True, slots=True)
class HoldSlot:
    """Ask the plug-in to set a slot aside; answered by `SlotHeld`."""

    key: str
    unit: RequestUnit
    slot: Slot
    until: Instant


@dataclass(frozen=True, slots=True)
class ConfirmSlot:
    """Ask the plug-in to make a hold firm; answered by `SlotConfirmed`."""

    key: str


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Tell the plug-in to give a hold or reservation back; not answered."""

    key: str


@dataclass(frozen=True, slots=True)
class DescribeMachine:
    """Ask the plug-in for its snapshot; answered by `MachineDescribed`."""

    call_id: str
    horizon: int


AskPlugin = QuoteSlots | HoldSlot | ConfirmSlot | ReleaseSlot | DescribeMachine


@dataclass(frozen=True, slots=True)
class PostPayment:
    """Ask the ledger to move an agreement's cost from user to resource, once; answered by `PaymentPosted`."""

    agreement: Agreement


@dataclass(frozen=True, slots=True)
class RefusePayment:
    """Ask the ledger never to pay an agreement, unless it has; answered by `PaymentPosted`."""

    agreement_id: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class PostRefund:
    """Ask the ledger to reverse, once, what the user paid to the resource; answered by `RefundPosted`."""

    agreement_id: str
    user: str
    resource: str


@dataclass(frozen=True, slots=True)
class LookUpPayment:
    """Ask the ledger what became of an agreement; answered by `PaymentLookedUp`."""

    call_id: str
    agreement_id: str


@dataclass(frozen=True, slots=True)
class LookUpAccount:
    """Ask the ledger for balance and statement, using up the nonce; answered by `AccountLookedUp`."""

    call_id: str
    nonce: str
    account: str
    issued_at: Instant
    since: Instant | None
    until: Instant | None


AskLedger = PostPayment | RefusePayment | PostRefund | LookUpPayment | LookUpAccount


@dataclass(frozen=True, slots=True)
class SaveAgreement:
    """Keep a signed agreement where its owner finds it (a file under the state folder)."""

    agreement_id: str
    signed: Signed


@dataclass(frozen=True, slots=True)
class Report:
    """Tell whoever watches how a conversation is going; no part of the protocol."""

    progress: Progress


Effect = (
    Send
    | Persist
    | QuoteSlots
    | HoldSlot
    | ConfirmSlot
    | ReleaseSlot
    | DescribeMachine
    | PostPayment
    | RefusePayment
    | PostRefund
    | LookUpPayment
    | LookUpAccount
    | SaveAgreement
    | Report
)
