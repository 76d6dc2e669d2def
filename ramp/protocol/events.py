"""Events of a party besides messages: commands of its owner and answers of its plug-in or ledger."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.fast_dataclass import fast_dataclass
from ramp.ledger.entry import DecidedChange, Order
from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.contents.jobs import JobState
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.offer import Refusal
from ramp.model.request import RequestForQuotation
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.protocol.enrolment.authority import AuthorityAnswer
from ramp.protocol.pricing import PriceRefusal


class Preference(StrEnum):
    """The ranking of offers (paper section 6.1 ranks by cost)."""

    CHEAPEST = "cheapest"
    SOONEST = "soonest"


class Approval(StrEnum):
    """Approval of offers (paper section 5.1.1, step 5).

    AUTO buys offers that meet the request. ASK shows each purchase first. BEST_OFFER buys the best offer if none meets
    it; such an offer may cost more than the request allows, so clients require a maximum total cost.
    """

    AUTO = "auto"
    ASK = "ask"
    BEST_OFFER = "best-offer"


@dataclass(frozen=True, slots=True)
class AuctionOptions:
    """Options of an auction.

    Attributes:
        rounds: number of bidding rounds, the paper's N (section 5.1.1); 3 as in its section 10.
        round_time: limit of a round; it closes earlier once every expected answer is in. 15 s as in Table 4.
        quote_only: stop before accepting; nothing is held, and the offers may be accepted for a while.
        max_cost: maximum total cost in minor units; None without a limit besides the units' prices.
        rule: name of the auction rule; empty for the agent's default, in records for the paper's.
        name: the owner's name for the request; sellers do not see it.
    """

    rounds: int = 3
    round_time: Duration = 15 * SECOND
    preference: Preference = Preference.CHEAPEST
    approval: Approval = Approval.AUTO
    quote_only: bool = False
    max_cost: int | None = None
    rule: str = ""
    name: str = ""


class Command:
    """Base of an owner's commands."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RequestSubmitted(Command):
    """The owner submits a request."""

    request_id: str
    request: RequestForQuotation
    options: AuctionOptions


@dataclass(frozen=True, slots=True)
class OffersApproved(Command):
    """The owner's answer to the offers shown, or its acceptance of a quote's offers while they stand.

    Attributes:
        sellers: numbers of units with the resource whose offer is bought; the best offers of other units.
    """

    request_id: str
    approved: bool
    sellers: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RequestWithdrawn(Command):
    """The owner stops a running request; ignored after the decision."""

    request_id: str


@dataclass(frozen=True, slots=True)
class AgreementResized(Command):
    """The owner resizes a bought slot.

    Attributes:
        agreement_id: of the slot.
        cores: new number of cores; None keeps the present one.
        until: new end; None keeps the present one.
        quote_only: only report the refund or cost.
        price: maximum price of the addition, credits per core hour; None for the price asked at purchase.
        max_cost: maximum total cost of the addition, minor units; None without a limit besides the price.
        together: other agreements to resize alike by one order, all or none; only to add.
    """

    agreement_id: str
    cores: int | None = None
    until: Instant | None = None
    quote_only: bool = False
    price: int | None = None
    max_cost: int | None = None
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgreementCancelled(Command):
    """The owner cancels a bought unit."""

    agreement_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class JobSubmitted(Command):
    """The owner submits a job on a bought slot; the same job again changes nothing."""

    order: c.JobOrder


@dataclass(frozen=True, slots=True)
class JobAsked(Command):
    """The owner asks about a job, cancels it, or sends a piece of its archive of inputs before it is ordered.

    Attributes:
        query_id: names the question.
        word: for the resource; its agreement is that of the job, and named only with a piece of inputs.
    """

    query_id: str
    word: c.JobQuery | c.JobCancellation | c.JobOutputQuery | c.JobInputPiece


@dataclass(frozen=True, slots=True)
class AccountAsked(Command):
    """The owner asks the bank for balance or statement."""

    query_id: str
    since: Instant | None
    until: Instant | None


@dataclass(frozen=True, slots=True)
class MachineAsked(Command):
    """The owner asks a resource for its machine's state."""

    query_id: str
    resource: str
    horizon: Duration


@dataclass(frozen=True, slots=True)
class ResourcesAsked(Command):
    """The owner asks the directory for the agents of a service, by default the sellers."""

    query_id: str
    service: str = RESOURCE_SERVICE


@dataclass(frozen=True, slots=True)
class ClockAsked(Command):
    """The clock is to be compared with the bank's; `query_id` must be new."""

    query_id: str


@dataclass(frozen=True, slots=True)
class KeeperAsked(Command):
    """The keeper gives the bank an order, whose id is its idempotency key, or asks for an overview of all trading."""

    word: c.DepositOrder | c.RefundOrder | c.OverviewQuery


@fast_dataclass(frozen=True, slots=True)
class SlotsQuoted:
    """The plug-in's answer to `QuoteSlots`, one entry a unit in the order asked."""

    call_id: str
    answers: tuple[Slot | Refusal, ...]


@fast_dataclass(frozen=True, slots=True)
class SlotsPriced:
    """The price strategy's answer to `PriceSlots`, one entry a question in the order asked."""

    call_id: str
    prices: tuple[int | PriceRefusal, ...]


@dataclass(frozen=True, slots=True)
class MachineInDoubt:
    """The plug-in failed, took too long, or gave an invalid answer: the machine's state is unknown.

    Attributes:
        reason: a sentence for people.
        transient: whether the same call may succeed later; None if the plug-in has not said.
    """

    reason: str
    transient: bool | None = None


@dataclass(frozen=True, slots=True)
class SlotHeld:
    """The plug-in's answer to `HoldSlot`."""

    key: str
    answer: Reservation | Refusal | MachineInDoubt


@dataclass(frozen=True, slots=True)
class SlotConfirmed:
    """The plug-in's answer to `ConfirmSlot`."""

    key: str
    answer: Reservation | Refusal | MachineInDoubt


@dataclass(frozen=True, slots=True)
class SlotLookedUp:
    """The plug-in's answer to `LookUpSlot`: the slot of a key, or None."""

    key: str
    answer: Reservation | MachineInDoubt | None


@dataclass(frozen=True, slots=True)
class SlotResized:
    """The plug-in's answer to that step of `ResizeSlot`."""

    key: str
    step: int
    answer: Reservation | Refusal | MachineInDoubt


@dataclass(frozen=True, slots=True)
class SlotFreed:
    """The plug-in's answer to `ReleaseSlot`; None if it is done."""

    key: str
    answer: MachineInDoubt | None


@dataclass(frozen=True, slots=True)
class MachineOpened:
    """The plug-in has opened, after its party: the source of its queue, and whether it must know its buyers."""

    source: str
    tended: bool = False


@dataclass(frozen=True, slots=True)
class MachineDescribed:
    """The plug-in's answer to `DescribeMachine`: a JSON object as text."""

    call_id: str
    snapshot: str


@dataclass(frozen=True, slots=True)
class SlotsForgotten:
    """The plug-in's answer to `ForgetSlots`; a plug-in need not forget."""


@dataclass(frozen=True, slots=True)
class JobSight:
    """A job as its launcher sees it.

    Attributes:
        state: never `taken`.
        native_id: the batch system's name for it, or empty.
        cores: allocated to it; 0 if unknown.
        exit_code: of its command; negative for the signal that ended it; None if it never ran or the code is unknown.
        detail: one sentence for people.
    """

    state: JobState
    native_id: str = ""
    cores: int = 0
    started_at: Instant | None = None
    ended_at: Instant | None = None
    exit_code: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """The launcher's answer about a job; None for an unknown one."""

    job_id: str
    answer: JobSight | MachineInDoubt | None


@dataclass(frozen=True, slots=True)
class JobFileRead:
    """The launcher's answer to the `ReadJobFile` or `StageJobInput` of that call.

    Attributes:
        data: the piece in base64; None without output, see the code.
        size: present size of the whole file in bytes.
        complete: whether the job has ended.
        code: `no_file` or `in_doubt` without output.
        detail: the same as a sentence.
    """

    call_id: str
    data: str | None
    size: int = 0
    complete: bool = False
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SlotsTended:
    """The plug-in's answer to `TendSlots`, by key: lost slots with reasons, moved slots, and slots seen in order."""

    lost: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, SlotMove], ...] = ()
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderStands:
    """The ledger's answer about an order; None for an unknown one.

    Attributes:
        message: that caused the question.
        ended: the change that has ended the agreement in question, or None.
    """

    message: Message
    order: Order | None
    ended: DecidedChange | None = None


@dataclass(frozen=True, slots=True)
class ChangeDecided:
    """The ledger's answer about a change.

    Attributes:
        message: that caused the question.
        user: who has paid for the agreement, if it has ended.
        resource: who was paid, if it has ended.
        order: of the agreement, at present, after the seller's failure; else None.
    """

    message: Message
    change: DecidedChange
    user: str = ""
    resource: str = ""
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class OrdersSwept:
    """The ledger's answer to `SweepOrders`: orders voided now, and those still reserved."""

    voided: tuple[Order, ...]
    reserved: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class LedgerFound:
    """The bank's answer to a message, as the ledger gives it."""

    message: Message
    content: c.DepositMade | c.AccountStatement | c.MarketOverview


@dataclass(frozen=True, slots=True)
class LedgerRefused:
    """The ledger refuses what a message asks for; nothing has changed."""

    message: Message
    code: str
    detail: str


LedgerAnswer = OrderStands | ChangeDecided | OrdersSwept | LedgerFound | LedgerRefused

Answer = (
    SlotsQuoted
    | SlotHeld
    | SlotConfirmed
    | SlotLookedUp
    | SlotFreed
    | MachineOpened
    | MachineDescribed
    | SlotsForgotten
    | SlotsPriced
    | JobSeen
    | JobFileRead
    | SlotsTended
    | LedgerAnswer
    | AuthorityAnswer
    | SlotResized
)
Event = Command | Message | Answer
