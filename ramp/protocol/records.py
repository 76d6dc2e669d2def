"""Journal records: what each party must remember to keep its word after a crash.

A party's whole durable memory is the list of its records in order; `recover(records, now)` of its machine rebuilds
the conversations from them. The bank has none: its ledger remembers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Agreement, Cancellation, Signed
from ramp.model.contents import Failed, FundsReserved, JobOrder, JobRefused, JobStatus, PaymentMade, SlotMoved
from ramp.model.instant import Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Seal
from ramp.model.slot import Slot
from ramp.protocol.amending.memory import (
    AmendmentConcluded,
    AmendmentDropped,
    AmendmentProposed,
    AmendmentReceived,
    AmendmentSettled,
    CapacityTaken,
)
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
class FundsAsked:
    """User: agreements are drawn up, and the bank is about to be asked to set their costs aside.

    A coordinator that restarts with this record and without `CommitDecided` voids the order (presumed abort).

    Attributes:
        request_id: of the auction.
        order_id: which order.
        agreements: one a unit.
        vote_seals: the resources' seals on their votes, in the same order.
        at: when.
    """

    request_id: str
    order_id: str
    agreements: tuple[Agreement, ...]
    vote_seals: tuple[Seal, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class CommitDecided:
    """User: the decision of the two-phase commit, with the bank's vote on which it rests."""

    request_id: str
    order_id: str
    vote: FundsReserved
    vote_seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class UnitSettled:
    """User: the bank has paid for this agreement; the proof has both signatures and the bank's seal."""

    request_id: str
    agreement_id: str
    transfer_id: str
    signed: Signed
    payment_seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class FailureTold:
    """User: a resource has said that its unit cannot be had; its seal is worth a refund if it has been paid."""

    request_id: str
    failed: Failed
    failed_seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class VoidAsked:
    """User: the order is to be void; a restarted user asks the bank again instead of confirming."""

    request_id: str
    order_id: str
    reason: str
    at: Instant


@dataclass(frozen=True, slots=True)
class OrderClosed:
    """User: the bank's final word on an order, posted as a whole or void as a whole.

    Attributes:
        request_id: of the auction.
        order_id: which order.
        transfers: the payments in the order of the agreements; none where it is void.
        detail: why it is void.
        seal: the bank's.
        at: when.
    """

    request_id: str
    order_id: str
    transfers: tuple[PaymentMade, ...]
    detail: str
    seal: Seal
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
class RefundClaimed:
    """User: a resource that was paid says itself that it has failed; the money is claimed back."""

    failed: Failed
    failed_seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationConcluded:
    """User: how a cancellation or claim ended, with the bank's seal on it."""

    outcome: CancellationOutcome
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class HoldIntended:
    """Resource: a slot is about to be held for an accepted offer; the user's seal is on the acceptance.

    `rule` is the auction rule that the call has named, empty where the price paid is the price offered.
    """

    offer: Offer
    unit: RequestUnit
    slot: Slot
    user: str
    until: Instant
    seal: Seal
    at: Instant
    rule: str


@dataclass(frozen=True, slots=True)
class HoldMade:
    """Resource: the vote yes, binding until `until`."""

    offer_id: str
    reservation_id: str
    until: Instant
    at: Instant


@dataclass(frozen=True, slots=True)
class AgreementReceived:
    """Resource: the user's signed agreement and the bank's vote, accepted; from here on only the bank ends it."""

    offer_id: str
    agreement: Signed
    vote: FundsReserved
    vote_seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class AgreementPaid:
    """Resource: the bank has paid."""

    offer_id: str
    payment: PaymentMade
    payment_seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationReceived:
    """Resource: a valid cancellation has been accepted and will be carried out."""

    offer_id: str
    cancellation: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class CancellationDropped:
    """Resource: the bank would not refund, so the agreement stands; with the bank's seal on that."""

    offer_id: str
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class SlotFailed:
    """Resource: a slot that was paid for cannot be had; from here on only the bank's refund ends it."""

    offer_id: str
    code: RefusalCode
    detail: str
    at: Instant


@dataclass(frozen=True, slots=True)
class JobTaken:
    """Resource: a job is about to be launched on a sold slot; the buyer's seal is on the order.

    Attributes:
        offer_id: of the slot.
        order: what the buyer ordered.
        account: the local account that it runs as.
        due_at: when it should start.
        seal: the buyer's.
        at: when.
    """

    offer_id: str
    order: JobOrder
    account: str
    due_at: Instant
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class JobCancelAsked:
    """Resource: the buyer wants a job ended."""

    offer_id: str
    job_id: str
    at: Instant


@dataclass(frozen=True, slots=True)
class JobEnded:
    """Resource: how a job has ended."""

    offer_id: str
    status: JobStatus
    at: Instant


@dataclass(frozen=True, slots=True)
class JobOrdered:
    """User: a job is about to be ordered on something bought."""

    request_id: str
    resource: str
    order: JobOrder
    at: Instant


@dataclass(frozen=True, slots=True)
class JobHeard:
    """User: the resource's last word on a job: how it has ended, or why it is not run."""

    request_id: str
    word: JobStatus | JobRefused
    at: Instant


@dataclass(frozen=True, slots=True)
class MoveHeard:
    """User: what was bought has been moved, in the resource's own words and under its seal."""

    request_id: str
    word: SlotMoved
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class SlotReleased:
    """Resource: the slot is free again; the last record of its offer, with the seal of whoever ended it."""

    offer_id: str
    agreement_id: str
    code: RefusalCode
    detail: str
    refund: int
    seal: Seal | None
    at: Instant


RequestRecord = (
    RequestStarted
    | AcceptanceAsked
    | FundsAsked
    | CommitDecided
    | UnitSettled
    | FailureTold
    | VoidAsked
    | OrderClosed
    | RequestConcluded
)
"""What a user keeps of one request."""

ParticipantRecord = (
    HoldMade
    | AgreementReceived
    | AgreementPaid
    | CancellationReceived
    | CancellationDropped
    | SlotFailed
    | SlotReleased
)
"""What a resource keeps of one accepted offer after its HoldIntended."""

SlotJobRecord = JobTaken | JobCancelAsked | JobEnded
"""What a resource keeps of the jobs on a slot."""

OwnJobRecord = JobOrdered | JobHeard
"""What a user keeps of its jobs."""

Record = (
    RequestStarted
    | AcceptanceAsked
    | FundsAsked
    | CommitDecided
    | UnitSettled
    | FailureTold
    | VoidAsked
    | OrderClosed
    | RequestConcluded
    | CancellationStarted
    | RefundClaimed
    | CancellationConcluded
    | HoldIntended
    | HoldMade
    | AgreementReceived
    | AgreementPaid
    | CancellationReceived
    | CancellationDropped
    | SlotFailed
    | SlotReleased
    | JobTaken
    | JobCancelAsked
    | JobEnded
    | JobOrdered
    | JobHeard
    | AmendmentProposed
    | AmendmentConcluded
    | AmendmentReceived
    | CapacityTaken
    | AmendmentSettled
    | AmendmentDropped
    | MoveHeard
)


def reference_of(record: Record) -> str:
    """What a record is about: a request, an agreement that is given back or changed, or an accepted offer.

    Records with one reference go to the archive together (`ramp.protocol.retention`).
    """
    match record:
        case HoldIntended():
            return record.offer.offer_id
        case CancellationStarted():
            return record.cancellation.agreement_id
        case RefundClaimed():
            return record.failed.agreement_id
        case CancellationConcluded() | AmendmentConcluded():
            return record.outcome.agreement_id
        case AmendmentProposed():
            return record.amendment.agreement_id
        case AmendmentReceived() | CapacityTaken() | AmendmentSettled() | AmendmentDropped():
            return record.offer_id
        case HoldMade() | AgreementReceived() | AgreementPaid() | CancellationReceived():
            return record.offer_id
        case CancellationDropped() | SlotFailed() | SlotReleased() | JobTaken() | JobCancelAsked() | JobEnded():
            return record.offer_id
        case _:
            return record.request_id
