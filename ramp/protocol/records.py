"""Journal records: the data that each party needs to keep its promises after a crash.

The list of its records in order is a party's whole durable memory; `recover(records, now)` of its machine rebuilds the
conversations. The bank has no records, as its ledger is durable.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import ChangePosted, FundsReserved, JobOrder, JobRefused, JobStatus, PaymentMade, SlotMoved
from ramp.model.instant import Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.model.seal import Seal
from ramp.model.slot import Slot
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import ChangeOutcome, RequestOutcome


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """User: an auction has started."""

    request_id: str
    request: RequestForQuotation
    options: AuctionOptions
    at: Instant


@dataclass(frozen=True, slots=True)
class AcceptanceAsked:
    """User: this offer is about to be accepted, so its resource may hold a slot."""

    request_id: str
    offer: Offer
    at: Instant


@dataclass(frozen=True, slots=True)
class FundsAsked:
    """User: agreements are drawn up, and the bank is about to be asked to reserve their costs.

    A user that restarts with this record and without `CommitDecided` voids the order (presumed abort).

    Attributes:
        agreements: one a unit.
        vote_seals: the resources' seals on their votes, in the same order.
    """

    request_id: str
    order_id: str
    agreements: tuple[Agreement, ...]
    vote_seals: tuple[Seal, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class CommitDecided:
    """User: the decision of the two-phase commit, with the bank's vote that permits it."""

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
    """User: a resource reported that its unit failed; its signature justifies a refund of a payment."""

    request_id: str
    failure: Signed
    at: Instant


@dataclass(frozen=True, slots=True)
class VoidAsked:
    """User: the order must be voided; a restarted user asks the bank again instead of confirming."""

    request_id: str
    order_id: str
    reason: str
    at: Instant


@dataclass(frozen=True, slots=True)
class OrderClosed:
    """User: the bank's final answer about an order, posted or void as a whole.

    Attributes:
        transfers: payments in the order of the agreements; empty if it is void.
        detail: why it is void.
        seal: the bank's.
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
class HoldIntended:
    """Resource: a slot is about to be held for an accepted offer; the user's seal is on the acceptance.

    `rule` is the auction rule named by the call, empty if the price paid is the price offered.
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
    """Resource: it accepts the user's signed agreement with the bank's vote; only the bank can end it now."""

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
class ChangeProposed:
    """User: a change is about to be proposed, or a failure that the resource has signed to be claimed at the bank.

    `together` has the agreements of all amendments paid by the same order; it is empty if nothing is paid. All are
    recorded before any is proposed.
    """

    signed: Signed
    at: Instant
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeConcluded:
    """User: the bank's final answer about a change, with its seal."""

    outcome: ChangeOutcome
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class ChangeReceived:
    """Resource: it accepts a change signed by the user, or has lost a paid slot; only the bank can end the sale.

    An addition is recorded before the machine is asked, so that a restarted resource can release it.
    """

    offer_id: str
    signed: Signed
    at: Instant

    @property
    def number(self) -> int:
        return self.signed.change.number


@dataclass(frozen=True, slots=True)
class CapacityTaken:
    """Resource: the machine has released the cores, or the addition can be paid; the bank is asked next."""

    offer_id: str
    number: int
    at: Instant


@dataclass(frozen=True, slots=True)
class ChangeSettled:
    """Resource: the bank has posted an amendment."""

    offer_id: str
    posted: ChangePosted
    seal: Seal
    at: Instant

    @property
    def number(self) -> int:
        return self.posted.number


@dataclass(frozen=True, slots=True)
class ChangeDropped:
    """Resource: an amendment failed, or the bank refused a refund, so the slot is unchanged."""

    offer_id: str
    number: int
    code: str
    detail: str
    at: Instant


@dataclass(frozen=True, slots=True)
class JobTaken:
    """Resource: a job is about to be launched on a sold slot.

    Attributes:
        account: the local account to run as.
        due_at: when it should start.
        seal: the buyer's, on the order.
        command: of the application that the order names; empty without one.
    """

    offer_id: str
    order: JobOrder
    account: str
    due_at: Instant
    seal: Seal
    at: Instant
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobCancelAsked:
    """Resource: the buyer cancels a job."""

    offer_id: str
    job_id: str
    at: Instant


@dataclass(frozen=True, slots=True)
class JobEnded:
    """Resource: a job has ended."""

    offer_id: str
    status: JobStatus
    at: Instant


@dataclass(frozen=True, slots=True)
class JobOrdered:
    """User: a job is about to be ordered on a bought slot."""

    request_id: str
    resource: str
    order: JobOrder
    at: Instant


@dataclass(frozen=True, slots=True)
class JobHeard:
    """User: the resource's final answer about a job: its end, or a refusal."""

    request_id: str
    word: JobStatus | JobRefused
    at: Instant


@dataclass(frozen=True, slots=True)
class MoveHeard:
    """User: a resource moved a bought slot; with its sealed message."""

    request_id: str
    word: SlotMoved
    seal: Seal
    at: Instant


@dataclass(frozen=True, slots=True)
class SlotReleased:
    """Resource: the slot is free again; last record of its offer, with the seal of the party that ended it."""

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
"""Records of a user about one request."""

ParticipantRecord = HoldMade | AgreementReceived | AgreementPaid | SlotReleased
"""Records of a resource about one accepted offer after its HoldIntended, besides changes."""

SoldChangeRecord = ChangeReceived | CapacityTaken | ChangeSettled | ChangeDropped
"""Records of a resource about changes of what it has sold; `number` is the change's."""

SlotJobRecord = JobTaken | JobCancelAsked | JobEnded
"""Records of a resource about the jobs on a slot."""

Record = (
    RequestRecord
    | HoldIntended
    | ParticipantRecord
    | SlotJobRecord
    | JobOrdered
    | JobHeard
    | ChangeProposed
    | ChangeConcluded
    | SoldChangeRecord
    | MoveHeard
)


def reference_of(record: Record) -> str:
    """Return the subject of a record: a request, a changed agreement, or an accepted offer.

    Records with one reference are archived together (`ramp.protocol.conversations`).
    """
    if isinstance(record, ParticipantRecord | SlotJobRecord | SoldChangeRecord):
        return record.offer_id
    match record:
        case HoldIntended():
            return record.offer.offer_id
        case ChangeConcluded():
            return record.outcome.agreement_id
        case ChangeProposed():
            return record.signed.body.agreement_id
        case _:
            return record.request_id
