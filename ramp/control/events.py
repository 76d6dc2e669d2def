"""Events that an agent sends its owner: progress of a request, and one last event for every request.

`EVENTS` lists them by their names on the wire. Classes of the protocol and the model are used where they fit; the
classes here add data for the owner, such as files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from ramp.control.requests import by_wire_name
from ramp.control.status import SwarmStatus
from ramp.errors import ConfigurationError, DocumentError, MarketRefused, RampError
from ramp.model import contents as c
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import Instant
from ramp.protocol import progress as pr
from ramp.protocol.outcome import ChangeOutcome, RequestOutcome
from ramp.protocol.rules.auction_rule import PAPER_RULE


class MarketRefusalCode(StrEnum):
    """Why an agent refuses a request of its owner; a closed list for clients.

    OTHER_VERSION: client and agent speak different versions of this table. NOT_UNDERSTOOD: no request of this table,
    or values that make no sense. BAD_DOCUMENT: the request for quotation cannot be taken as it is. UNKNOWN_REQUEST:
    no request has that id. NO_ANSWER: bank, directory or resource did not answer. BANK_REFUSED: the bank answers no.
    MACHINE_FAILED: the resource answers, but its machine does not. JOB_REFUSED: a resource does not run a job, or knows
    of none. AGENT_FAILED: a fault of the agent; it is in its log. UNKNOWN_AGENT: no agent of that kind has that name.
    NAME_TAKEN: another agent or account uses the name. QUOTE_OVER: the
    offers of a quote stand no more, or a seller made none. STILL_OPEN: the party to remove owes or holds something.
    """

    OTHER_VERSION = "other_version"
    NOT_UNDERSTOOD = "not_understood"
    BAD_DOCUMENT = "bad_document"
    UNKNOWN_REQUEST = "unknown_request"
    NO_ANSWER = "no_answer"
    BANK_REFUSED = "bank_refused"
    MACHINE_FAILED = "machine_failed"
    JOB_REFUSED = "job_refused"
    AGENT_FAILED = "agent_failed"
    UNKNOWN_AGENT = "unknown_agent"
    NAME_TAKEN = "name_taken"
    STILL_OPEN = "still_open"
    QUOTE_OVER = "quote_over"


CALLERS_OWN: Final = frozenset(
    {
        MarketRefusalCode.OTHER_VERSION,
        MarketRefusalCode.NOT_UNDERSTOOD,
        MarketRefusalCode.BAD_DOCUMENT,
        MarketRefusalCode.UNKNOWN_REQUEST,
        MarketRefusalCode.UNKNOWN_AGENT,
        MarketRefusalCode.NAME_TAKEN,
        MarketRefusalCode.QUOTE_OVER,
    }
)
"""Refusals of bad input, which a retry does not change: exit code 2; the others are 1."""


def market_refused(code: MarketRefusalCode, reason: str) -> MarketRefused:
    """Convert a refusal to an exception."""
    return MarketRefused(code, reason, exit_code=2 if code in CALLERS_OWN else 1)


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to `Hello`: both speak the same version; `agent` is the full name of the agent."""

    version: int
    agent: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """A request has been taken; warnings are about its document."""

    request_id: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Watching:
    """From now on all events are reported."""


@dataclass(frozen=True, slots=True)
class Done:
    """The request is done and has no other answer."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The request was refused."""

    code: MarketRefusalCode
    reason: str


@dataclass(frozen=True, slots=True)
class RequestStanding:
    """A request with its present state.

    Attributes:
        stage: the state of the machine at work, or how it ended.
        doubt: what is in doubt and how that will end, or empty.
        outcome: the result, possibly without its rounds; None while it runs.
        archived: whether it is in the user's archive only.
        charged: payments for everything that it bought, with additions, in minor units.
        returned: refunds of these, in minor units.
        name: the owner's name for it; empty without one.
    """

    request_id: str
    stage: str
    doubt: str
    units: int
    started_at: Instant
    outcome: RequestOutcome | None = None
    archived: bool = False
    rule: str = PAPER_RULE
    charged: int = 0
    returned: int = 0
    name: str = ""

    @property
    def cost(self) -> int:
        """Payments less refunds, in minor units."""
        return self.charged - self.returned


@dataclass(frozen=True, slots=True)
class AgreementStanding:
    """An agreement with its present state.

    Attributes:
        state: `settling`, `active`, `cancelling`, `cancelled`, `lost` (by the seller) or `void`; in the archive also
            `past`.
        doubt: what is in doubt and how that will end, or empty.
        file: path of the signed agreement, or None.
        payment_file: path of the bank's sealed receipt, or None.
        archived: whether it is in the user's archive only.
        amendments: valid amendments in order; the last one has the present size of the slot.
        moved: the slot's new place, as the resource last reported; None if it was not moved.
        refunded: refund of a cancelled or failed slot, in minor units.
        cause: why the seller has lost the slot; empty if it has not.
    """

    agreement: Agreement
    state: str
    doubt: str = ""
    file: str | None = None
    payment_file: str | None = None
    archived: bool = False
    moved: c.SlotMoved | None = None
    amendments: tuple[ContractChange, ...] = ()
    refunded: int = 0
    cause: str = ""

    @property
    def cores(self) -> int:
        """Current cores of the slot."""
        return self.amendments[-1].cores if self.amendments else self.agreement.offer.cores

    @property
    def end(self) -> Instant:
        """Current end of the slot."""
        return self.amendments[-1].until if self.amendments else self.agreement.offer.end

    @property
    def reservation_id(self) -> str:
        """The machine's current name for the slot."""
        return self.agreement.reservation_id if self.moved is None else self.moved.reservation_id

    @property
    def amended(self) -> Agreement:
        """The agreement with the current cores, end and name of its slot, for launching; not a proof."""
        offer = replace(self.agreement.offer, cores=self.cores, end=self.end)
        return replace(self.agreement, offer=offer, reservation_id=self.reservation_id)

    @property
    def charged(self) -> int:
        """Payments with those for additions, in minor units; nothing is paid for a void agreement."""
        if self.state == "void":
            return 0
        return self.agreement.cost + sum(each.charge for each in self.amendments)

    @property
    def returned(self) -> int:
        """Refunds, also for smaller slots, in minor units."""
        return self.refunded + sum(each.refund for each in self.amendments)

    @property
    def cost(self) -> int:
        """Payments less refunds, in minor units."""
        return self.charged - self.returned


def by_request(bought: Iterable[AgreementStanding]) -> dict[str, tuple[int, int]]:
    """Return what each request has paid and what was returned of it, in minor units by its id."""
    found: dict[str, tuple[int, int]] = {}
    for each in bought:
        charged, returned = found.get(each.agreement.request_id, (0, 0))
        found[each.agreement.request_id] = charged + each.charged, returned + each.returned
    return found


@dataclass(frozen=True, slots=True)
class ChangesEnded:
    """The result of a cancellation or a resize; of a joint resize of several slots all are done, or none."""

    outcomes: tuple[ChangeOutcome, ...]


@dataclass(frozen=True, slots=True)
class RequestsListed:
    """Every request, in the order of submission; and how the agent's clock compares with the bank's, where known."""

    requests: tuple[RequestStanding, ...]
    clock: pr.ClockCompared | None = None


@dataclass(frozen=True, slots=True)
class AgreementsListed:
    """Everything that was bought, in the order of buying."""

    agreements: tuple[AgreementStanding, ...]


@dataclass(frozen=True, slots=True)
class JobStanding:
    """A job as its user's agent knows it.

    Attributes:
        request_id: of the auction that its slot was bought in.
        status: the resource's last report; None before its first, or after a refusal.
        refused: why it is not run, or None.
        slot: state of the agreement of its slot, as in `AgreementStanding`.
    """

    order: c.JobOrder
    request_id: str
    resource: str
    ordered_at: Instant
    status: c.JobStatus | None = None
    refused: c.JobRefused | None = None
    slot: str = "active"

    @property
    def has_ended(self) -> bool:
        return self.refused is not None or (self.status is not None and self.status.state.is_final)


@dataclass(frozen=True, slots=True)
class JobsListed:
    """Every job, in the order of ordering."""

    jobs: tuple[JobStanding, ...]


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One thing that is changed.

    Attributes:
        kind: `remove`, `add`, `update`, `rebuild`, `renew`, `restart`; `later` is not done now, and the text says when;
            `stands` is a change by a command that overrides the file; `warning` reports a problem.
        name: of the agent, or of the part of the configuration.
    """

    kind: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MarketChanged:
    """The changes made, or planned if `done` is false."""

    lines: tuple[ChangeLine, ...]
    done: bool = True


Progress = (
    Watching
    | Submitted
    | pr.RoundOpened
    | pr.RoundClosed
    | pr.ApprovalAsked
    | pr.UnitAdvanced
    | pr.UnitMoved
    | pr.ClockCompared
    | pr.ChangeAdvanced
    | pr.ChangeEnded
)
"""Events of a running request."""

Last = (
    Welcome
    | pr.RequestEnded
    | ChangesEnded
    | RequestsListed
    | AgreementsListed
    | JobsListed
    | c.JobStatus
    | c.JobOutput
    | c.AccountStatement
    | c.MachineStatus
    | c.DirectoryListing
    | c.DepositMade
    | c.ChangePosted
    | c.MarketOverview
    | MarketChanged
    | SwarmStatus
    | Done
    | Refused
)
"""Events that end an answer."""

Event = Progress | Last

EVENTS: Final[dict[str, type[Event]]] = by_wire_name(Event)
"""Every event by its name on the wire."""


def request_of(event: Event | pr.Progress) -> str:
    """Return the id of the request whose auction an event reports, or ""; moves of slots belong to no auction."""
    match event:
        case pr.RoundOpened() | pr.RoundClosed() | pr.ApprovalAsked() | pr.UnitAdvanced():
            return event.request_id
        case pr.RequestEnded():
            return event.outcome.request_id
        case _:
            return ""


def refusal(error: RampError) -> Refused:
    """Convert an error of a request to a refusal."""
    if isinstance(error, MarketRefused):
        return Refused(MarketRefusalCode(error.code), error.reason)
    if isinstance(error, DocumentError):
        return Refused(MarketRefusalCode.BAD_DOCUMENT, str(error))
    own = error.exit_code == ConfigurationError.exit_code
    return Refused(MarketRefusalCode.NOT_UNDERSTOOD if own else MarketRefusalCode.AGENT_FAILED, str(error))
