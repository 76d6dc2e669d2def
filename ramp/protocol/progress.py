"""Progress reports of running conversations, for people and measurements; not part of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ramp.model import contents as c
from ramp.model.agreement import ContractChange
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer
from ramp.protocol.outcome import ChangeOutcome, RequestOutcome, RoundRecord


class Progress:
    """Base of all reports."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RoundOpened(Progress):
    """Calls for proposals were sent to `resources` resources."""

    request_id: str
    round_number: int
    asked: tuple[tuple[int, int], ...]
    resources: int
    best_offer: bool = False


@dataclass(frozen=True, slots=True)
class RoundClosed(Progress):
    """A round has ended.

    Attributes:
        best: best offer of each unit so far (unit number, offer at its price per core-hour asked).
        answered: resources with their answer times, in order of arrival.
        called_again: number of repeated calls.
    """

    request_id: str
    record: RoundRecord
    best: tuple[tuple[int, c.Bid], ...]
    answered: tuple[tuple[str, Duration], ...] = ()
    called_again: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalAsked(Progress):
    """The owner is asked to approve the best offer of each unit.

    Attributes:
        meets: whether each meets the request.
        costs: of each at present, in minor units.
        until: when the request ends without an answer.
    """

    request_id: str
    offers: tuple[Offer, ...]
    meets: tuple[bool, ...]
    costs: tuple[int, ...]
    until: Instant


@dataclass(frozen=True, slots=True)
class UnitAdvanced(Progress):
    """A unit's purchase has reached a new stage (asking, agreed, confirming, confirmed, settled, failed, ...)."""

    request_id: str
    unit: int
    resource: str
    stage: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class UnitMoved(Progress):
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
class RequestEnded(Progress):
    """A request has ended; its agent adds the paths of signed agreements by their ids, None where there is no file."""

    outcome: RequestOutcome
    files: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangeAdvanced(Progress):
    """A resize advances: its resource has agreed."""

    amendment: ContractChange


@dataclass(frozen=True, slots=True)
class ChangeEnded(Progress):
    """A change of a contract has ended."""

    outcome: ChangeOutcome


Answer = (
    c.AccountStatement
    | c.MachineStatus
    | c.DirectoryListing
    | c.DepositMade
    | c.ChangePosted
    | c.MarketOverview
    | c.JobStatus
    | c.JobRefused
    | c.JobOutput
    | c.EnrolmentGranted
    | c.RequestRefused
    | c.NotUnderstood
)
"""Answers to an owner's questions and the keeper's orders."""


@dataclass(frozen=True, slots=True)
class QueryAnswered(Progress):
    """A query of the owner was answered (None: no answer came)."""

    query_id: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class ClockCompared(Progress):
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
class GuestFailed(Progress):
    """A guest of a resource (price strategy, plug-in) failed; an empty reason means that it works again."""

    guest: str
    reason: str


@dataclass(frozen=True, slots=True)
class SlotLost(Progress):
    """A resource has lost a sold slot, and the bank shall refund it."""

    agreement_id: str
    user: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeeperOrdered(Progress):
    """The bank has carried out an order of the market's keeper, a deposit or a refund; for the bank's log."""

    keeper: str
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class RecordsMissing(Progress):
    """The journal lacks records of a request, which is not resumed; for the log."""

    request_id: str
    what: str


@dataclass(frozen=True, slots=True)
class EnrolmentAnswered(Progress):
    """The enrolment office has answered a request; `code` is empty if it was granted."""

    sender: str
    invitation_id: str
    code: str


@dataclass(frozen=True, slots=True)
class RevocationsFollowed(Progress):
    """The revocation list of that number is in force; `problem` describes a fault of it, or of another."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class MembershipEnded(Progress):
    """The market has revoked this party's own certificate; other parties refuse its messages."""

    reason: str
