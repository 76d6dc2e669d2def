"""What happens to a party besides messages: commands of its owner and answers of its plug-in or ledger."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.model.acl import Message
from ramp.model.contents import StatementLine
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.offer import Refusal
from ramp.model.request import RequestForQuotation
from ramp.model.slot import Reservation, Slot


class Preference(StrEnum):
    """How offers are ranked (paper section 6.1 ranks by cost)."""

    CHEAPEST = "cheapest"
    SOONEST = "soonest"


class Approval(StrEnum):
    """Who says yes to offers (paper section 5.1.1, step 5).

    AUTO buys what meets the request; ASK shows every purchase to the user first; BEST_OFFER also buys, unasked, the
    best offer where none meets the request.
    """

    AUTO = "auto"
    ASK = "ask"
    BEST_OFFER = "best-offer"


@dataclass(frozen=True, slots=True)
class AuctionOptions:
    """How a request is auctioned.

    Attributes:
        rounds: number of bidding rounds, the paper's N (section 5.1.1); 3 as in its section 10.
        round_time: limit of a round; it closes earlier once every expected answer is in. 15 s as in Table 4.
        preference: the ranking.
        approval: who says yes.
        quote_only: stop before accepting; nothing is held.
    """

    rounds: int = 3
    round_time: Duration = 15 * SECOND
    preference: Preference = Preference.CHEAPEST
    approval: Approval = Approval.AUTO
    quote_only: bool = False


@dataclass(frozen=True, slots=True)
class RequestSubmitted:
    """The owner wants a request auctioned."""

    request_id: str
    request: RequestForQuotation
    options: AuctionOptions


@dataclass(frozen=True, slots=True)
class OffersApproved:
    """The owner's answer to the offers shown."""

    request_id: str
    approved: bool


@dataclass(frozen=True, slots=True)
class RequestWithdrawn:
    """The owner wants a running request stopped; ignored once it has been decided."""

    request_id: str


@dataclass(frozen=True, slots=True)
class AgreementCancelled:
    """The owner gives a bought unit back."""

    agreement_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AccountAsked:
    """The owner asks the bank for balance or statement."""

    query_id: str
    since: Instant | None
    until: Instant | None


@dataclass(frozen=True, slots=True)
class MachineAsked:
    """The owner asks a resource how its machine is."""

    query_id: str
    resource: str
    horizon: Duration


@dataclass(frozen=True, slots=True)
class ResourcesAsked:
    """The owner asks the directory who sells."""

    query_id: str


Command = (
    RequestSubmitted
    | OffersApproved
    | RequestWithdrawn
    | AgreementCancelled
    | AccountAsked
    | MachineAsked
    | ResourcesAsked
)


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message has come in."""

    message: Message


@dataclass(frozen=True, slots=True)
class SlotsQuoted:
    """The plug-in's answer to `QuoteSlots`, one entry a unit in the order asked."""

    call_id: str
    answers: tuple[Slot | Refusal, ...]


@dataclass(frozen=True, slots=True)
class SlotHeld:
    """The plug-in's answer to `HoldSlot`."""

    key: str
    answer: Reservation | Refusal


@dataclass(frozen=True, slots=True)
class SlotConfirmed:
    """The plug-in's answer to `ConfirmSlot`."""

    key: str
    answer: Reservation | Refusal


@dataclass(frozen=True, slots=True)
class MachineDescribed:
    """The plug-in's answer to `DescribeMachine`: a JSON object as text."""

    call_id: str
    snapshot: str


@dataclass(frozen=True, slots=True)
class PaymentPosted:
    """The ledger's answer to `PostPayment`: a transfer id, or the refusal's code."""

    agreement_id: str
    transfer_id: str
    amount: int
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RefundPosted:
    """The ledger's answer to `PostRefund`."""

    agreement_id: str
    transfer_id: str
    amount: int
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PaymentLookedUp:
    """The ledger's answer to `LookUpPayment`."""

    call_id: str
    agreement_id: str
    status: str
    transfer_id: str
    amount: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class AccountLookedUp:
    """The ledger's answer to `LookUpAccount`; amounts in minor units."""

    call_id: str
    balance: int
    reserved: int
    credit_limit: int
    lines: tuple[StatementLine, ...]
    code: str = ""
    detail: str = ""


Answer = (
    SlotsQuoted
    | SlotHeld
    | SlotConfirmed
    | MachineDescribed
    | PaymentPosted
    | RefundPosted
    | PaymentLookedUp
    | AccountLookedUp
)
Event = Command | MessageReceived | Answer
