"""Effects: requests of a protocol machine to its host, in order.

The order of the list is the contract. A `Persist` is durable before any later effect is carried out, so nothing leaves
a party that its journal does not have. `AskLedger` is carried out at its place and answered by an event that the party
gets next. So are `AskMachine` and `PriceSlots` if the guest answers at once; else the answer comes later, among other
events.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.fast_dataclass import fast_dataclass
from ramp.ledger.entry import Grounds, Order
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import Content, HoldCancelled, NotUnderstood, Rejection
from ramp.model.instant import Instant
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot
from ramp.protocol.enrolment.authority import AskAuthority
from ramp.protocol.pricing import PriceQuestion
from ramp.protocol.progress import Progress
from ramp.protocol.records import Record


@fast_dataclass(frozen=True, slots=True)
class Send:
    """Give a message to the network; it may be lost, duplicated or delayed.

    `sealed` asks for a seal even if the content needs none.
    """

    message: Message
    sealed: bool = False


def not_understood(message: Message, reason: str) -> Send:
    """Return the answer to a message that breaks the protocol."""
    return reply(message, Performative.NOT_UNDERSTOOD, NotUnderstood(reason))


def reply(message: Message, performative: Performative, content: Content) -> Send:
    """Return the receiver's answer to a message, in its conversation."""
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


def cancel_hold(user: str, resource: str, request_id: str, offer_id: str) -> Send:
    """Return a CANCEL of a hold (step 9), acknowledged by INFORM."""
    cancelled = HoldCancelled(request_id, offer_id)
    return Send(Message(Performative.CANCEL, user, resource, request_id, cancelled, reply_with=offer_id))


def reject(user: str, resource: str, request_id: str, offer_id: str, reason: str) -> Send:
    """Return a REJECT_PROPOSAL for one offer; it expects no answer."""
    rejection = Rejection(request_id, offer_id, reason)
    return Send(Message(Performative.REJECT_PROPOSAL, user, resource, request_id, rejection))


@dataclass(frozen=True, slots=True)
class Persist:
    """Make a record durable in the party's journal before anything later happens."""

    record: Record


@fast_dataclass(frozen=True, slots=True)
class QuoteSlots:
    """Ask the plug-in which slot each unit would get; answered by `SlotsQuoted`."""

    call_id: str
    units: tuple[RequestUnit, ...]


@dataclass(frozen=True, slots=True)
class HoldSlot:
    """Ask the plug-in to reserve a slot; answered by `SlotHeld`.

    Attributes:
        key: of the slot from now on.
        unit: with the offered size.
        slot: as quoted.
        until: end of the reservation unless it is bought.
        account: the buyer's local account, or empty.
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
class ResizeSlot:
    """Ask the plug-in to resize a firm slot at once; answered by `SlotResized`.

    Attributes:
        key: of the slot.
        step: number of the request; one that arrives after a higher step is not done, as requests overtake each other.
        cores: new number of cores.
        until: new end.
    """

    key: str
    step: int
    cores: int
    until: Instant


@dataclass(frozen=True, slots=True)
class ReleaseSlot:
    """Ask the plug-in to release a hold or reservation; answered by `SlotFreed`."""

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
    """Tell the plug-in that these keys will not be used again; answered by `SlotsForgotten`, without effect.

    It precedes their `Archive`, so after a crash between the two it is repeated.
    """

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TendSlots:
    """Ask the plug-in for all sold slots and tell it their buyers; answered by `SlotsTended` with lost and moved ones.

    `slots` has the key of each, and its buyer's local account, or empty.
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


@fast_dataclass(frozen=True, slots=True)
class PriceSlots:
    """Ask the price strategy for a bid for each slot; answered by `SlotsPriced`."""

    call_id: str
    questions: tuple[PriceQuestion, ...]


@dataclass(frozen=True, slots=True)
class JobToRun:
    """A job as its launcher receives it.

    Attributes:
        job_id: a launcher launches each id once.
        reservation_id: the machine's name for the slot.
        account: the local account to run as.
        cores: of the slot, for this job.
        begin_at: earliest start.
        end_at: end of the slot and the job.
        arguments: the command and its arguments.
        inputs: files to stage first.
        environment: variables that describe its slot, besides the usual ones.
        queue_key: without a reserved slot, the key of the queued job in which this one runs, whose number is
            `reservation_id`; else empty.
        start_by: on the agent's own computer, the latest start; a job that could not start until then never starts.
        archive: SHA-256 of the archive of inputs that was staged before; empty without one.
        gres: GPUs of each node in Slurm's words (`RequestUnit.gres`); none that the request does not name.
    """

    job_id: str
    resource: str
    reservation_id: str
    account: str
    cores: int
    begin_at: Instant
    end_at: Instant
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    queue_key: str = ""
    start_by: Instant = 0
    archive: str = ""
    gres: str = "none"


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """Ask the launcher to submit a job unless it already exists; answered by `JobSeen`."""

    job: JobToRun


@dataclass(frozen=True, slots=True)
class LookUpJob:
    """Ask the launcher for a job's state; answered by `JobSeen`."""

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


@dataclass(frozen=True, slots=True)
class StageJobInput:
    """Ask the launcher to keep a piece of a job's archive of inputs; answered by `JobFileRead` with its new size."""

    call_id: str
    job: JobToRun
    offset: int
    data: str


AskLauncher = SubmitJob | LookUpJob | CancelJob | ReadJobFile | StageJobInput
"""Questions to a launcher."""


@dataclass(frozen=True, slots=True)
class CarryOut:
    """Ask the ledger to do or look up what a message asks for; answered by an event about this message.

    That is `OrderStands` for an order or its withdrawal, `ChangeDecided` for the withdrawal of a change or the keeper's
    refund, and `LedgerFound` for the rest. Here as below, the message's seal or signed document justifies the change
    and is stored with it.
    """

    message: Message


@dataclass(frozen=True, slots=True)
class CountersignLine:
    """Tell the ledger that a countersigned agreement has arrived; answered by `OrderStands`.

    The last one of an order posts the whole order.
    """

    message: Message
    agreement_id: str
    starts_at: Instant


@dataclass(frozen=True, slots=True)
class VoidOrder:
    """Ask the ledger to void an unposted order, because of a message; answered by `OrderStands`."""

    message: Message
    order: Order
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class PostChange:
    """Ask the ledger to post the signed change in a message, or to void it for good; answered by `ChangeDecided`.

    `grounds` says who has justified it.
    """

    message: Message
    grounds: Grounds


@dataclass(frozen=True, slots=True)
class LookUpAgreement:
    """Ask the ledger for the order of an agreement; answered by `OrderStands`."""

    message: Message
    agreement_id: str


@dataclass(frozen=True, slots=True)
class SweepOrders:
    """Ask the ledger to void expired orders; answered by `OrdersSwept`."""


AboutMessage = CarryOut | CountersignLine | VoidOrder | PostChange | LookUpAgreement
"""Questions to the ledger that a message has caused."""

AskLedger = AboutMessage | SweepOrders


@dataclass(frozen=True, slots=True)
class Archive:
    """Archive all records of these references (`records.reference_of`), so that no start reads them.

    References without records are ignored.
    """

    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaveAgreement:
    """Save a signed agreement and the bank's payment message for their owner, in two files."""

    agreement_id: str
    signed: Signed
    payment: str


@dataclass(frozen=True, slots=True)
class Report:
    """Report the progress of a conversation to watchers; not part of the protocol."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class TakeUpAgain:
    """Resume one conversation from the journal after a bug in it; others continue.

    Attributes:
        reference: the party's name for the conversation.
        error: the exception.
    """

    reference: str
    error: Exception


Effect = (
    Send
    | Persist
    | AskMachine
    | PriceSlots
    | AskLauncher
    | AskLedger
    | AskAuthority
    | Archive
    | SaveAgreement
    | Report
    | TakeUpAgain
)
