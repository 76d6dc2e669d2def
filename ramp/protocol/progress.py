"""What a watcher is told while conversations go on: no part of the protocol, only for people and measurements."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Amendment
from ramp.model.contents import (
    AccountQueryRefused,
    AccountStatement,
    DepositMade,
    DirectoryListing,
    EnrolmentDenied,
    EnrolmentGranted,
    JobOutput,
    JobRefused,
    JobStatus,
    KeeperRefused,
    MachineStatus,
    MarketOverview,
)
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer
from ramp.protocol.amending.asking import AmendmentOutcome
from ramp.protocol.outcome import CancellationOutcome, RequestOutcome, RoundRecord


@dataclass(frozen=True, slots=True)
class RoundOpened:
    """Calls for proposals have gone out to `resources` resources."""

    request_id: str
    round_number: int
    asked: tuple[tuple[int, int], ...]
    resources: int
    best_offer: bool = False


@dataclass(frozen=True, slots=True)
class RoundClosed:
    """A round has ended.

    Attributes:
        request_id: the auction.
        record: the round as it went.
        best: the best offer of each unit so far (unit number, offer).
        answered: who answered how long after the calls had gone out, in order of arrival.
        called_again: how many calls were sent again.
    """

    request_id: str
    record: RoundRecord
    best: tuple[tuple[int, Offer], ...]
    answered: tuple[tuple[str, Duration], ...] = ()
    called_again: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The owner is asked to approve these offers.

    Attributes:
        request_id: which request.
        offers: the best of each unit.
        meets: which of them meet the request.
        costs: what would be paid for each, in minor units, as things stand.
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
    """What was bought has been moved to other places of its machine, says its resource.

    Attributes:
        request_id: the auction that it was bought in.
        agreement_id: which.
        resource: whose machine it is.
        placement: where it is now, in the machine's words.
        moved_at: when it was moved, by the machine's record.
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
class AmendmentAdvanced:
    """A change of size goes on: its resource has agreed, and takes the rest back at that instant."""

    amendment: Amendment


@dataclass(frozen=True, slots=True)
class AmendmentEnded:
    """A change of size has ended."""

    outcome: AmendmentOutcome


Answer = (
    AccountStatement
    | AccountQueryRefused
    | MachineStatus
    | DirectoryListing
    | DepositMade
    | KeeperRefused
    | MarketOverview
    | JobStatus
    | JobRefused
    | JobOutput
    | EnrolmentGranted
    | EnrolmentDenied
)
"""What an owner's questions and the keeper's orders are answered with."""


@dataclass(frozen=True, slots=True)
class QueryAnswered:
    """A bank, resource or directory has answered a query of the owner (None: no answer came)."""

    query_id: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class ClockCompared:
    """The clock has been compared with the bank's.

    Attributes:
        offset: by how much it is ahead; negative: behind.
        uncertainty: by how much the offset may be wrong, to either side.
        wrong: whether it is certainly further off than it should be.
    """

    offset: Duration
    uncertainty: Duration
    wrong: bool


@dataclass(frozen=True, slots=True)
class GuestFailed:
    """A guest of a resource (price strategy, plug-in) has failed or answered what cannot be; no reason: it is well."""

    guest: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeeperOrdered:
    """The bank has carried out an order of the market's keeper; for the bank's log."""

    keeper: str
    what: str


@dataclass(frozen=True, slots=True)
class RecordsMissing:
    """The journal does not have all that belongs to a request, which is not taken up; for the log.

    Attributes:
        request_id: which.
        what: what is missing.
    """

    request_id: str
    what: str


@dataclass(frozen=True, slots=True)
class EnrolmentAnswered:
    """The enrolment office has answered a request; `code` says why it was refused, empty where it was granted."""

    sender: str
    invitation_id: str
    code: str


@dataclass(frozen=True, slots=True)
class RevocationsFollowed:
    """The revocation list of that number is here now; `problem` says what is wrong with it, or with another."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class MembershipEnded:
    """The market has revoked this party's own certificate: nobody believes it any more."""

    reason: str


Progress = (
    RoundOpened
    | RoundClosed
    | ApprovalAsked
    | UnitAdvanced
    | UnitMoved
    | RequestEnded
    | CancellationEnded
    | AmendmentAdvanced
    | AmendmentEnded
    | QueryAnswered
    | ClockCompared
    | GuestFailed
    | KeeperOrdered
    | RecordsMissing
    | EnrolmentAnswered
    | RevocationsFollowed
    | MembershipEnded
)
