"""Journal records: what each party must remember to keep its word after a crash.

A party's whole durable memory is the list of its records in order; `recover(records, now)` of its machine rebuilds
the conversations from them. The bank has none: its ledger remembers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Agreement, Cancellation, Signed
from ramp.model.instant import Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.slot import Slot
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import CancellationOutcome, RequestOutcome


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """User: an auction has begun."""

    request_id: str
    request: RequestForQuotation
    options: AuctionOptions
    at: Instant


@dataclass(frozen=True, slots=True)
class AcceptanceAsked:
    """User: this offer is about to be accepted, so its resource may come to hold a slot."""

    request_id: str
    offer: Offer
    at: Instant


@dataclass(frozen=True, slots=True)
class CommitDecided:
    """User: the decision of the two-phase commit. Without this record a restarted coordinator presumes abort."""

    request_id: str
    agreements: tuple[Agreement, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class UnitSettled:
    """User: the bank has paid for this agreement; the proof has both signatures (None if only the bank said so)."""

    request_id: str
    agreement_id: str
    transfer_id: str
    signed: Signed | None
    at: Instant


@dataclass(frozen=True, slots=True)
class UndoDecided:
    """User: a confirmed unit failed, so the others are given back.

    `cancellations` are the documents for the units that have not failed.
    """

    request_id: str
    failed_agreement_id: str
    reason: str
    cancellations: tuple[Cancellation, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class RequestConcluded:
    """User: a request has ended."""

    request_id: str
    outcome: RequestOutcome
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationStarted:
    """User: the owner gives a bought unit back."""

    cancellation: Cancellation
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationConcluded:
    """User: how a cancellation ended."""

    outcome: CancellationOutcome
    at: Instant


@dataclass(frozen=True, slots=True)
class HoldIntended:
    """Resource: a slot is about to be held for an accepted offer."""

    offer: Offer
    unit: RequestUnit
    slot: Slot
    user: str
    until: Instant
    at: Instant


@dataclass(frozen=True, slots=True)
class HoldMade:
    """Resource: the vote yes, binding until `until`."""

    offer_id: str
    reservation_id: str
    until: Instant
    at: Instant


@dataclass(frozen=True, slots=True)
class AgreementReceived:
    """Resource: the user's signed agreement, accepted; from here on only the bank or a cancellation ends it."""

    offer_id: str
    agreement: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class AgreementPaid:
    """Resource: the bank has paid."""

    offer_id: str
    agreement_id: str
    transfer_id: str
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationReceived:
    """Resource: a valid cancellation has been accepted and will be carried out."""

    offer_id: str
    cancellation: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationDropped:
    """Resource: the bank would not refund, so the agreement stands."""

    offer_id: str
    at: Instant


@dataclass(frozen=True, slots=True)
class SlotReleased:
    """Resource: the slot is free again; the last record of its offer."""

    offer_id: str
    agreement_id: str
    code: RefusalCode
    detail: str
    refund: int
    at: Instant


Record = (
    RequestStarted
    | AcceptanceAsked
    | CommitDecided
    | UnitSettled
    | UndoDecided
    | RequestConcluded
    | CancellationStarted
    | CancellationConcluded
    | HoldIntended
    | HoldMade
    | AgreementReceived
    | AgreementPaid
    | CancellationReceived
    | CancellationDropped
    | SlotReleased
)
