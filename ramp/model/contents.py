"""Contents of the market's messages, as typed values; `ramp.rfql` turns them into XML and back.

Which performative carries which content is `ramp.model.acl.CONTENT_OF`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.agreement import Signed
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestForQuotation
from ramp.model.seal import Seal


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
        rule: name of the auction rule where the price paid may not be the price offered: then proposals have to be
            sealed; empty where the price offered is paid.
    """

    request_id: str
    round_number: int
    request: RequestForQuotation
    bids: tuple[Bid, ...] = ()
    best_offer: bool = False
    rule: str = ""


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
    """REFUSE: the vote no; also to a commitment that is not accepted, for its hold is over or its terms are wrong."""

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
class OrderLine:
    """One agreement of an order.

    Attributes:
        agreement_id: which.
        resource: who is to be paid.
        cost: minor units.
        offer_id: the offer that is bought. It ties a resource's word about an offer to what has been paid: that another
            offer has failed brings no money back.
    """

    agreement_id: str
    resource: str
    cost: int
    offer_id: str = ""


@dataclass(frozen=True, slots=True)
class PaymentOrder:
    """REQUEST by the user: set these costs aside for me, all or none; asked when all slots are held.

    Attributes:
        order_id: unique; the bank's idempotency key.
        lines: one an agreement, in the order of the units.
        valid_until: by the bank's clock; then whatever has not been posted is void. The agreements hold as long.
    """

    order_id: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant


@dataclass(frozen=True, slots=True)
class FundsReserved:
    """AGREE by the bank, its vote yes: the costs are set aside under their agreement ids.

    Attributes:
        order_id: which order.
        user: whose money.
        lines: as ordered.
        valid_for: how long from the first sending of the order; a duration, for clocks differ.
        valid_until: the same by the bank's clock.
        bank_time: the bank's clock.
    """

    order_id: str
    user: str
    lines: tuple[OrderLine, ...]
    valid_for: Duration
    valid_until: Instant
    bank_time: Instant


@dataclass(frozen=True, slots=True)
class OrderRefused:
    """REFUSE by the bank, its vote no, final for this order; `code` is the ledger's (`insufficient_funds`, ...)."""

    order_id: str
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OrderWithdrawal:
    """REQUEST by the user: void this order, unless it has been posted; also of an order that never arrived.

    Attributes:
        order_id: which.
        valid_until: that of the order; so long a void of an order not seen yet is remembered.
        reason: one sentence for people.
    """

    order_id: str
    valid_until: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class OrderPosted:
    """INFORM by the bank, final: the whole order is paid; `transfers` are the payments, in the order of the lines."""

    order_id: str
    transfers: tuple[PaymentMade, ...]


@dataclass(frozen=True, slots=True)
class OrderVoided:
    """INFORM by the bank, final: nothing of the order is paid, nor ever will be.

    Attributes:
        order_id: which.
        code: why.
        detail: the same as a sentence.
        awaited: the lines whose countersigned agreement had not come: whom to pass over when going on.
    """

    order_id: str
    code: str
    detail: str = ""
    awaited: tuple[OrderLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Commitment:
    """CONFIRM by the user: the signed agreement, with the bank's vote for the order that it belongs to.

    Attributes:
        agreement: signed by the user.
        vote: the bank's word that the cost is set aside.
        vote_seal: the bank's seal on it.
    """

    agreement: Signed
    vote: FundsReserved
    vote_seal: Seal


@dataclass(frozen=True, slots=True)
class RefundClaim:
    """REQUEST by the user: the resource itself says that the paid unit cannot be had.

    Attributes:
        failed: what the resource said.
        failed_seal: its seal on it.
    """

    failed: Failed
    failed_seal: Seal


@dataclass(frozen=True, slots=True)
class Confirmed:
    """CONFIRM by the resource: the signed agreement has arrived and is on its way to the bank."""

    agreement_id: str
    offer_id: str


@dataclass(frozen=True, slots=True)
class Settled:
    """INFORM: the bank has paid; the agreement with both signatures, and the bank's own word, as proof.

    Attributes:
        agreement_id: which.
        offer_id: the offer it came from.
        agreement: with both signatures.
        payment: what the bank said to the resource.
        payment_seal: the bank's seal on it.
    """

    agreement_id: str
    offer_id: str
    agreement: Signed
    payment: PaymentMade
    payment_seal: Seal


@dataclass(frozen=True, slots=True)
class Failed:
    """FAILURE: the confirmed unit cannot be had after all; the slot has been released.

    Said only of an agreement that had been accepted: whoever has it under the resource's seal gets the money back.
    """

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
    """REFUSE or INFORM by the bank, final: this agreement is not paid, nor ever will be."""

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
    """QUERY_REF to the bank by a party of it: what became of this agreement?

    Answered by `PaymentMade`, `RefundMade` or `PaymentRefused` (void, or not known); not at all while it is pending.
    """

    agreement_id: str


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
class AccountQuery:
    """QUERY_REF to the bank for one's own balance or statement (paper section 6.3, BalanceRequestBehaviour).

    Attributes:
        nonce: never used twice by one account.
        account: whose account; must be the sender's.
        since: first instant of the statement, or None for balances only.
        until: last instant of the statement, or None for the present one.
    """

    nonce: str
    account: str
    since: Instant | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class AccountStatement:
    """INFORM by the bank to an account query; amounts in minor units."""

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
class DepositOrder:
    """REQUEST by the keeper: credit an account out of the market's issuing account.

    Attributes:
        deposit_id: unique; the idempotency key.
        account: who gets it.
        amount: minor units, above zero.
        memo: one line for people.
    """

    deposit_id: str
    account: str
    amount: int
    memo: str = ""


@dataclass(frozen=True, slots=True)
class DepositMade:
    """AGREE by the bank: the account has been credited, once."""

    deposit_id: str
    transfer_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class KeeperRefused:
    """REFUSE by the bank to an order or query of the keeper; `reference` is the deposit's or query's id."""

    reference: str
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OverviewQuery:
    """QUERY_REF by the keeper: all trading in a period (paper section 6.3), in pages.

    Attributes:
        query_id: names the question.
        since: first instant, None for the beginning.
        until: last instant, None for the present.
        after: where the page begins: the number behind the last trade of the page before.
    """

    query_id: str
    since: Instant | None = None
    until: Instant | None = None
    after: int = 0


@dataclass(frozen=True, slots=True)
class AccountLine:
    """One account in the overview; amounts in minor units."""

    account: str
    kind: str
    balance: int
    reserved: int
    credit_limit: int


@dataclass(frozen=True, slots=True)
class TradeLine:
    """One posted transfer in the overview; the amount in minor units, the order empty where there is none."""

    transfer_id: str
    posted_at: Instant
    kind: str
    debit_account: str
    credit_account: str
    agreement_id: str
    order_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class MarketOverview:
    """INFORM by the bank to the keeper: all accounts and a page of the trading.

    Attributes:
        query_id: as asked.
        bank_time: the bank's clock.
        accounts: every account; on the first page only.
        trades: in the order of posting.
        next_after: where the next page begins; 0 where this is the last.
    """

    query_id: str
    bank_time: Instant
    accounts: tuple[AccountLine, ...] = ()
    trades: tuple[TradeLine, ...] = ()
    next_after: int = 0


@dataclass(frozen=True, slots=True)
class ClockQuery:
    """QUERY_REF to the bank: what time is it? `query_id` serves once, so that no old answer fits."""

    query_id: str


@dataclass(frozen=True, slots=True)
class ClockReading:
    """INFORM by the bank: its clock, read between the question and this answer."""

    query_id: str
    bank_time: Instant


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
    """SUBSCRIBE to the directory: this agent offers `service` for the next `lease`; repeated as a heartbeat.

    Attributes:
        service: one of the market's services.
        lease: how long without a heartbeat.
        number: higher than in every registration and withdrawal before, so that a captured one changes nothing.
    """

    service: str
    lease: Duration
    number: int


@dataclass(frozen=True, slots=True)
class Registered:
    """INFORM by the directory: whoever asks is listed; `number` is the highest that it knows of that agent."""

    service: str
    number: int


@dataclass(frozen=True, slots=True)
class Deregistration:
    """CANCEL to the directory: this agent leaves; numbered as registrations are."""

    service: str
    number: int


@dataclass(frozen=True, slots=True)
class DirectoryQuery:
    """QUERY_REF to the directory: who offers `service` now? `after` is the last name of the page before."""

    query_id: str
    service: str
    after: str = ""


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """INFORM by the directory: a page of names in alphabetical order; `more` says that others follow."""

    query_id: str
    service: str
    names: tuple[str, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Unverified:
    """Stands in for a signed content whose signatures did not verify; made by the host, never sent.

    Attributes:
        kind: `agreement` or `cancellation`.
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
    | PaymentOrder
    | FundsReserved
    | OrderRefused
    | OrderWithdrawal
    | OrderPosted
    | OrderVoided
    | Commitment
    | Signed
    | Confirmed
    | Settled
    | Failed
    | RefundClaim
    | CancellationDone
    | CancellationRefused
    | PaymentMade
    | PaymentRefused
    | RefundMade
    | RefundRefused
    | PaymentQuery
    | AccountQuery
    | AccountStatement
    | AccountQueryRefused
    | DepositOrder
    | DepositMade
    | KeeperRefused
    | OverviewQuery
    | MarketOverview
    | ClockQuery
    | ClockReading
    | MachineQuery
    | MachineStatus
    | Registration
    | Registered
    | Deregistration
    | DirectoryQuery
    | DirectoryListing
    | Unverified
    | NotUnderstood
)
