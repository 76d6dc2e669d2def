"""Progress reports of running conversations, for people and measurements; not part of the protocol."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import ContractChange
from ramp.model.contents import (
    AccountStatement,
    Bid,
    ChangePosted,
    DepositMade,
    DirectoryListing,
    EnrolmentGranted,
    JobOutput,
    JobRefused,
    JobStatus,
    MachineStatus,
    MarketOverview,
    NotUnderstood,
    RequestRefused,
)
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer
from ramp.protocol.outcome import CancellationOutcome, ChangeOutcome, RequestOutcome, RoundRecord


@dataclass(frozen=True, slots=True)
class RoundOpened:
    """Calls for proposals were sent to `resources` resources."""

    request_id: str
    round_number: int
    asked: tuple[tuple[int, int], ...]
    resources: int
    best_offer: bool = False


@dataclass(frozen=True, slots=True)
class RoundClosed:
    """A round has ended.

    Attributes:
        best: best offer of each unit so far (unit number, offer at its price per core-hour asked).
        answered: resources with their answer times, in order of arrival.
        called_again: number of repeated calls.
    """

    request_id: str
    record: RoundRecord
    best: tuple[tuple[int, Bid], ...]
    answered: tuple[tuple[str, Duration], ...] = ()
    called_again: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The owner is asked to approve the best offer of each unit.

    Attributes:
        meets: whether each meets the request.
        costs: of each at present, in minor units.
    """

    request_id: str
    offers: tuple[Offer, ...]
    meets: tuple[bool, ...]
    costs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UnitAdvanced:
    """A unit's purchase has reached a new stage (asking, agreed, confirming, confirmed, settled, failed, ...)."""

    request_id: str
    unit: int
    resource: str
    stage: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class UnitMoved:
    """A resource moved a bought slot to other places of its machine.

    Attributes:
        placement: new place, in the machine's words.
        moved_at: by the machine's record.
    """

    request_id: str
    agreement_id: str
    resource: str
    placement: str
    moved_at: Instant


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request has ended."""

    outcome: RequestOutcome


@dataclass(frozen=True, slots=True)
class CancellationEnded:
    """A cancellation has ended."""

    outcome: CancellationOutcome


@dataclass(frozen=True, slots=True)
class ChangeAdvanced:
    """A resize advances: its resource has agreed."""

    amendment: ContractChange


@dataclass(frozen=True, slots=True)
class ChangeEnded:
    """A resize has ended."""

    outcome: ChangeOutcome


Answer = (
    AccountStatement
    | MachineStatus
    | DirectoryListing
    | DepositMade
    | ChangePosted
    | MarketOverview
    | JobStatus
    | JobRefused
    | JobOutput
    | EnrolmentGranted
    | RequestRefused
    | NotUnderstood
)
"""Answers to an owner's questions and the keeper's orders."""


@dataclass(frozen=True, slots=True)
class QueryAnswered:
    """A query of the owner was answered (None: no answer came)."""

    query_id: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class ClockCompared:
    """The party compared its clock with the bank's.

    Attributes:
        offset: positive if the own clock is ahead.
        uncertainty: maximum error of the offset, to either side.
        wrong: whether the clock is certainly further off than permitted.
    """

    offset: Duration
    uncertainty: Duration
    wrong: bool

    @property
    def certain(self) -> Duration:
        """The part of the offset that is certain: 0 on one computer, however slow its answers are."""
        size = max(abs(self.offset) - self.uncertainty, 0)
        return size if self.offset > 0 else -size


@dataclass(frozen=True, slots=True)
class GuestFailed:
    """A guest of a resource (price strategy, plug-in) failed; an empty reason means that it works again."""

    guest: str
    reason: str


@dataclass(frozen=True, slots=True)
class SlotLost:
    """A resource has lost a sold slot, and the bank shall refund it."""

    agreement_id: str
    user: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeeperOrdered:
    """The bank has carried out an order of the market's keeper, a deposit or a refund; for the bank's log."""

    keeper: str
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class RecordsMissing:
    """The journal lacks records of a request, which is not resumed; for the log."""

    request_id: str
    what: str


@dataclass(frozen=True, slots=True)
class EnrolmentAnswered:
    """The enrolment office has answered a request; `code` is empty if it was granted."""

    sender: str
    invitation_id: str
    code: str


@dataclass(frozen=True, slots=True)
class RevocationsFollowed:
    """The revocation list of that number is in force; `problem` describes a fault of it, or of another."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class MembershipEnded:
    """The market has revoked this party's own certificate; other parties refuse its messages."""

    reason: str


Progress = (
    RoundOpened
    | RoundClosed
    | ApprovalAsked
    | UnitAdvanced
    | UnitMoved
    | RequestEnded
    | CancellationEnded
    | ChangeAdvanced
    | ChangeEnded
    | QueryAnswered
    | ClockCompared
    | GuestFailed
    | SlotLost
    | KeeperOrdered
    | RecordsMissing
    | EnrolmentAnswered
    | RevocationsFollowed
    | MembershipEnded
)
