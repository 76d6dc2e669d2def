"""Effects: what a protocol machine asks its host to do, in order.

The order of the list is the contract: a `Persist` is durable before any later effect is carried out, so nothing leaves
a party that its journal does not know. `AskLedger` is carried out at its place in the order and answered by an
event that the host hands back to the party next; so are `AskMachine` and `PriceSlots` where the guest answers at once,
and else the answer comes later, among whatever else happens.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import Content, JobInput, NotUnderstood, OrderLine
from ramp.model.instant import Instant
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot
from ramp.protocol.amending.asking import PostAmendment, ResizeSlot, VoidAmendment
from ramp.protocol.enrolment.authority import AskAuthority
from ramp.protocol.pricing import PriceQuestion
from ramp.protocol.progress import Progress
from ramp.protocol.records import Record


@dataclass(frozen=True, slots=True)
class Send:
    """Give a message to the network; it may be lost, doubled or late.

    Attributes:
        message: what is sent.
        sealed: whether it leaves with a seal though its content need not have one.
    """

    message: Message
    sealed: bool = False


def not_understood(message: Message, reason: str) -> Send:
    """The answer to a message that broke the protocol."""
    return reply(message, Performative.NOT_UNDERSTOOD, NotUnderstood(reason))


def reply(message: Message, performative: Performative, content: Content) -> Send:
    """The answer of whom a message was sent to, in its conversation."""
    return Send(
        Message(
            performative,
            message.receiver,
            message.sender,
            message.conversation_id,
            content,
            in_reply_to=message.reply_with,
        )
    )


@dataclass(frozen=True, slots=True)
class Persist:
    """Make a record durable in the party's journal before anything later happens."""

    record: Record


@dataclass(frozen=True, slots=True)
class QuoteSlots:
    """Ask the plug-in which slot each unit would get; answered by `SlotsQuoted`."""

    call_id: str
    units: tuple[RequestUnit, ...]


@dataclass(frozen=True, slots=True)
class HoldSlot:
    """Ask the plug-in to set a slot aside; answered by `SlotHeld`.

    Attributes:
        key: the slot's, from now on.
        unit: what it is for.
        slot: as it was quoted.
        until: when it is free again unless it is bought.
        account: the local account of who may buy it; empty where the site maps the buyer to none.
    """

    key: str
    unit: RequestUnit
    slot: Slot
    until: Instant
    account: str = ""


@dataclass(frozen=True, slots=True)
class ConfirmSlot:
    """Ask the plug-in to make a hold firm; answered by `SlotConfirmed`."""

    key: str


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Ask the plug-in to give a hold or reservation back; answered by `SlotFreed`."""

    key: str


@dataclass(frozen=True, slots=True)
class LookUpSlot:
    """Ask the plug-in for the slot of a key; answered by `SlotLookedUp`."""

    key: str


@dataclass(frozen=True, slots=True)
class DescribeMachine:
    """Ask the plug-in for its snapshot; answered by `MachineDescribed`."""

    call_id: str
    horizon: int


@dataclass(frozen=True, slots=True)
class ForgetSlots:
    """Tell the plug-in that these keys are never asked for again; answered by `SlotsForgotten`, which changes nothing.

    Comes before their `Archive`: after a crash between the two it is said once more.
    """

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TendSlots:
    """Tell the plug-in whose the sold slots are, and hear which cannot be had any more; answered by `SlotsTended`.

    Attributes:
        slots: of each its key, and its buyer's local account; empty where the site maps the buyer to none.
    """

    slots: tuple[tuple[str, str], ...]


AskMachine = (
    QuoteSlots
    | HoldSlot
    | ConfirmSlot
    | ReleaseSlot
    | LookUpSlot
    | DescribeMachine
    | ForgetSlots
    | TendSlots
    | ResizeSlot
)


@dataclass(frozen=True, slots=True)
class PriceSlots:
    """Ask the price strategy for a bid for each slot; answered by `SlotsPriced`."""

    call_id: str
    questions: tuple[PriceQuestion, ...]


@dataclass(frozen=True, slots=True)
class JobToRun:
    """A job as its launcher receives it.

    Attributes:
        job_id: its name; what is launched under it once is never launched again.
        resource: the resource's name.
        reservation_id: the machine's name for the slot.
        account: the local account to run as.
        cores: of the slot, for this job.
        begin_at: not before that.
        end_at: when the slot ends, and the job with it.
        arguments: the command and its arguments.
        inputs: files that are staged first.
        environment: variables that describe its slot, beside the usual ones.
        queue_key: where no slot is reserved, the key of the job in a queue in which this one runs, and whose number
            there is `reservation_id`; else empty.
    """

    job_id: str
    resource: str
    reservation_id: str
    account: str
    cores: int
    begin_at: Instant
    end_at: Instant
    arguments: tuple[str, ...]
    inputs: tuple[JobInput, ...]
    environment: tuple[tuple[str, str], ...]
    queue_key: str = ""


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """Ask the launcher to submit a job, unless it has it already; answered by `JobSeen`."""

    job: JobToRun


@dataclass(frozen=True, slots=True)
class LookUpJob:
    """Ask the launcher how a job is; answered by `JobSeen`."""

    job: JobToRun


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Ask the launcher to end a job; answered by `JobSeen`, which may still show it running."""

    job: JobToRun


@dataclass(frozen=True, slots=True)
class ReadJobFile:
    """Ask the launcher for a piece of a file in a job's folder; answered by `JobFileRead`."""

    call_id: str
    job: JobToRun
    name: str
    offset: int


AskLauncher = SubmitJob | LookUpJob | CancelJob | ReadJobFile


@dataclass(frozen=True, slots=True)
class ReserveFunds:
    """Ask the ledger to set all lines of an order aside, or to refuse it for good; answered by `OrderStands`.

    Here as below, `evidence` is the sealed message or signed document on which the change rests; it is kept with it.
    """

    call_id: str
    order_id: str
    user: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant
    evidence: str


@dataclass(frozen=True, slots=True)
class CountersignLine:
    """Tell the ledger that an agreement is there with both signatures; answered by `OrderStands`.

    The last one of an order posts the whole order.
    """

    call_id: str
    agreement_id: str
    starts_at: Instant
    evidence: str


@dataclass(frozen=True, slots=True)
class VoidOrder:
    """Ask the ledger to void an order that is not posted, seen or not; answered by `OrderStands`."""

    call_id: str
    order_id: str
    user: str
    valid_until: Instant
    code: str
    detail: str
    evidence: str


@dataclass(frozen=True, slots=True)
class FailLine:
    """Tell the ledger that a resource has failed: voids its order, or refunds; answered by `OrderStands`.

    Attributes:
        call_id: names the question.
        agreement_id: which unit.
        offer_id: of what it speaks; it counts only for the offer that the order names.
        resource: whose word it is.
        user: who brings it and must be the buyer; empty where the resource itself says it.
        detail: what it says.
        evidence: its sealed word.
    """

    call_id: str
    agreement_id: str
    offer_id: str
    resource: str
    user: str
    detail: str
    evidence: str


@dataclass(frozen=True, slots=True)
class SweepOrders:
    """Ask the ledger to void expired orders; answered by `OrdersSwept`."""


@dataclass(frozen=True, slots=True)
class LookUpAgreement:
    """Ask the ledger for the order of an agreement; answered by `OrderStands`."""

    call_id: str
    agreement_id: str


@dataclass(frozen=True, slots=True)
class PostRefund:
    """Ask the ledger to reverse, once, what the user paid to the resource; answered by `RefundPosted`.

    Attributes:
        call_id: names the question.
        agreement_id: whose payment.
        user: who must have paid.
        resource: who must have been paid.
        before_start: only while the slot has not begun, for the buyer alone asks.
        evidence: the cancellation.
    """

    call_id: str
    agreement_id: str
    user: str
    resource: str
    before_start: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class PostDeposit:
    """Ask the ledger to credit an account, once; answered by `DepositPosted`."""

    call_id: str
    deposit_id: str
    account: str
    amount: int
    memo: str
    evidence: str


@dataclass(frozen=True, slots=True)
class LookUpOverview:
    """Ask the ledger for all accounts and a page of the trading; answered by `OverviewLookedUp`."""

    call_id: str
    since: Instant | None
    until: Instant | None
    after: int


@dataclass(frozen=True, slots=True)
class LookUpAccount:
    """Ask the ledger for balance and statement, using up the nonce; answered by `AccountLookedUp`."""

    call_id: str
    nonce: str
    account: str
    issued_at: Instant
    since: Instant | None
    until: Instant | None


AskLedger = (
    ReserveFunds
    | CountersignLine
    | VoidOrder
    | FailLine
    | SweepOrders
    | LookUpAgreement
    | PostRefund
    | PostDeposit
    | LookUpAccount
    | LookUpOverview
    | PostAmendment
    | VoidAmendment
)


@dataclass(frozen=True, slots=True)
class Archive:
    """Move every record of these references from the journal to the archive, which no start reads.

    Attributes:
        references: as `records.reference_of` names them; one without records is no error.
    """

    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaveAgreement:
    """Keep a signed agreement, and the bank's word that it is paid, where their owner finds them (two files)."""

    agreement_id: str
    signed: Signed
    payment: str


@dataclass(frozen=True, slots=True)
class Report:
    """Report the progress of a conversation to watchers; not part of the protocol."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class TakeUpAgain:
    """A bug has raised in the middle of a conversation: take it up again from the journal, and touch no other.

    Attributes:
        reference: what the party calls the conversation.
        error: what was raised.
    """

    reference: str
    error: Exception


Effect = (
    Send
    | Persist
    | QuoteSlots
    | HoldSlot
    | ConfirmSlot
    | ReleaseSlot
    | LookUpSlot
    | DescribeMachine
    | ForgetSlots
    | TendSlots
    | PriceSlots
    | SubmitJob
    | LookUpJob
    | CancelJob
    | ReadJobFile
    | ReserveFunds
    | CountersignLine
    | VoidOrder
    | FailLine
    | SweepOrders
    | LookUpAgreement
    | PostRefund
    | PostDeposit
    | LookUpAccount
    | LookUpOverview
    | AskAuthority
    | ResizeSlot
    | PostAmendment
    | VoidAmendment
    | Archive
    | SaveAgreement
    | Report
    | TakeUpAgain
)
