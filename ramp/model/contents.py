"""Contents of the market's messages, as typed values; `ramp.rfql` turns them into XML and back.

Which performative carries which content is `ramp.model.acl.CONTENT_OF`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Signed
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestForQuotation


@dataclass(frozen=True, slots=True)
class Bid:
    """One offer of an earlier round as everybody may see it: bidding is open (paper section 5.1.1)."""

    unit: int
    resource: str
    cpu_hour_cost: int


@dataclass(frozen=True, slots=True)
class CallForProposals:
    """CFP: all units of the request at this round's asking prices.

    Attributes:
        request_id: the auction.
        round_number: from 1.
        request: the units, `cpu_hour_cost` being the asking price.
        bids: the offers of the round before.
        best_offer: True in the extra round in which resources may offer what does not meet the request (section 4.1).
    """

    request_id: str
    round_number: int
    request: RequestForQuotation
    bids: tuple[Bid, ...] = ()
    best_offer: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """PROPOSE (with offers) or REFUSE (without): one answer for all units of a call."""

    request_id: str
    round_number: int
    offers: tuple[Offer, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """REJECT_PROPOSAL: an offer that does not meet the request, or that lost."""

    request_id: str
    offer_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Acceptance:
    """ACCEPT_PROPOSAL: the first phase's question: will you hold the slot?"""

    request_id: str
    offer_id: str


@dataclass(frozen=True, slots=True)
class HoldGranted:
    """AGREE: the vote yes, with the reservation's id and how long the hold lasts from the moment of sending."""

    request_id: str
    offer_id: str
    reservation_id: str
    hold_for: Duration


@dataclass(frozen=True, slots=True)
class HoldRefused:
    """REFUSE: the vote no."""

    request_id: str
    offer_id: str
    code: RefusalCode
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HoldCancelled:
    """CANCEL of a hold (step 9), and INFORM as its acknowledgement."""

    request_id: str
    offer_id: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """CONFIRM by the resource: the signed agreement has arrived and is on its way to the bank."""

    agreement_id: str
    offer_id: str


@dataclass(frozen=True, slots=True)
class Settled:
    """INFORM: the bank has paid; the agreement with both signatures as proof."""

    agreement_id: str
    offer_id: str
    transfer_id: str
    agreement: Signed


@dataclass(frozen=True, slots=True)
class Failed:
    """FAILURE: the confirmed unit cannot be had after all; the slot has been released."""

    agreement_id: str
    offer_id: str
    code: RefusalCode
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CancellationDone:
    """INFORM: the agreement is cancelled; `refund` minor units went back."""

    agreement_id: str
    refund: int


@dataclass(frozen=True, slots=True)
class CancellationRefused:
    """REFUSE: the agreement stands; `code` says why (`started`, `unknown_agreement`, `bad_signature`)."""

    agreement_id: str
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PaymentMade:
    """AGREE by the bank: user debited, resource credited."""

    agreement_id: str
    transfer_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class PaymentRefused:
    """REFUSE by the bank, final for this agreement id; `code` is the ledger's or the verification's."""

    agreement_id: str
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RefundMade:
    """AGREE to the resource and INFORM to the user: the payment is reversed (or never was: amount 0)."""

    agreement_id: str
    transfer_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class RefundRefused:
    """REFUSE by the bank: nothing was reversed."""

    agreement_id: str
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PaymentQuery:
    """QUERY_REF to the bank: what became of this agreement?"""

    agreement_id: str


@dataclass(frozen=True, slots=True)
class PaymentStatus:
    """INFORM by the bank.

    Attributes:
        agreement_id: as asked.
        status: `paid`, `refused`, `refunded` or `unknown`.
        transfer_id: of the payment, or empty.
        bank_time: the bank's clock; after `valid_until` an unknown agreement stays unpaid for ever.
    """

    agreement_id: str
    status: str
    transfer_id: str
    bank_time: Instant


@dataclass(frozen=True, slots=True)
class StatementLine:
    """One posted transfer as its account sees it; amounts in minor units, `amount` negative for a debit."""

    transfer_id: str
    posted_at: Instant
    kind: str
    counterparty: str
    agreement_id: str
    amount: int
    balance: int


@dataclass(frozen=True, slots=True)
class AccountStatement:
    """INFORM by the bank to a signed account query; amounts in minor units."""

    nonce: str
    account: str
    balance: int
    reserved: int
    credit_limit: int
    bank_time: Instant
    lines: tuple[StatementLine, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountQueryRefused:
    """REFUSE by the bank to an account query (wrong signer, replayed nonce, too old, unknown account)."""

    nonce: str
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MachineQuery:
    """QUERY_REF to a resource: how is the machine? `horizon` is how far ahead the projected load is wanted."""

    query_id: str
    horizon: Duration


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """INFORM by a resource: its plug-in's snapshot as a JSON object in text."""

    query_id: str
    snapshot: str


@dataclass(frozen=True, slots=True)
class Registration:
    """SUBSCRIBE to the directory: this agent offers `service` for the next `lease`; repeated as a heartbeat."""

    service: str
    lease: Duration


@dataclass(frozen=True, slots=True)
class Deregistration:
    """CANCEL to the directory: this agent leaves."""

    service: str


@dataclass(frozen=True, slots=True)
class DirectoryQuery:
    """QUERY_REF to the directory: who offers `service` now?"""

    query_id: str
    service: str


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """INFORM by the directory: names in alphabetical order; also the acknowledgement of a registration (empty id)."""

    query_id: str
    service: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unverified:
    """Stands in for a signed content whose signatures did not verify; made by the host, never sent.

    Attributes:
        kind: `agreement`, `cancellation` or `account_query`.
        reference: the id the document claims, for the answer only.
        code: what is wrong (`bad_signature`, `unknown_signer`, `certificate_expired`, `malformed`).
        detail: one sentence.
    """

    kind: str
    reference: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """NOT_UNDERSTOOD: the message broke the protocol or could not be read."""

    reason: str


Content = (
    CallForProposals
    | Proposal
    | Rejection
    | Acceptance
    | HoldGranted
    | HoldRefused
    | HoldCancelled
    | Signed
    | Confirmed
    | Settled
    | Failed
    | CancellationDone
    | CancellationRefused
    | PaymentMade
    | PaymentRefused
    | RefundMade
    | RefundRefused
    | PaymentQuery
    | PaymentStatus
    | AccountStatement
    | AccountQueryRefused
    | MachineQuery
    | MachineStatus
    | Registration
    | Deregistration
    | DirectoryQuery
    | DirectoryListing
    | Unverified
    | NotUnderstood
)
