"""The Banking Agent's whole protocol (paper sections 5.1.2 and 6.3).

The bank votes in the two-phase commit: it reserves the whole cost of an order, or refuses. When the countersigned
agreements of all units have arrived, it posts the order as a whole. A withdrawal by the buyer, a resource's failure
message or the end of the order's validity voids it as a whole. Each decision is durable in the ledger before it is
sent, and final. The ledger is the bank's journal; memory has only the open orders.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramp.errors import RemoteProtocolError
from ramp.ledger.entry import DecidedChange, Order, transfer_id_of
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ORDER_VALIDITY_MAX, TERMINAL, Agreement, ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, Instant
from ramp.model.money import credits_text
from ramp.model.price_paid import price_problem
from ramp.model.probable_start import QUEUE_WAIT_MAX, probable_start_problem
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as said
from ramp.protocol.agreement_terms import order_lines
from ramp.protocol.bank import changes
from ramp.protocol.bank.changes import BAD_SIGNATURE, BAD_TERMS
from ramp.protocol.belief import sealed_lately
from ramp.protocol.conversations import Alarm, guarded
from ramp.protocol.effects import Effect, Send, reply
from ramp.protocol.events import ChangeDecided, Event
from ramp.protocol.party import Party
from ramp.protocol.progress import KeeperOrdered
from ramp.protocol.records import Record
from ramp.protocol.timing import Timing, earliest


def order_answer(order: Order, now: Instant) -> tuple[Performative, c.Content]:
    """Return the answer to the buyer about an order."""
    if order.state is c.OrderState.RESERVED:
        left = order.valid_until - now
        vote = c.FundsReserved(order.order_id, order.user, order.lines, left, order.valid_until, now)
        return Performative.AGREE, vote
    if order.state is c.OrderState.POSTED:
        return Performative.INFORM, c.OrderPosted(order.order_id, tuple(map(_payment, order.lines)))
    if order.state is c.OrderState.REFUSED:
        return Performative.REFUSE, c.OrderRefused(order.order_id, order.code, order.reason)
    return Performative.INFORM, _voided(order)


def _voided(order: Order) -> c.OrderVoided:
    awaited = tuple(line for line in order.lines if line.agreement_id not in order.countersigned)
    return c.OrderVoided(order.order_id, order.code, order.reason, awaited)


def agreement_answer(
    order: Order, agreement_id: str, ended: DecidedChange | None = None
) -> tuple[Performative, c.Content] | None:
    """Return the answer about one agreement of an order; None while other agreements are awaited."""
    if ended is not None:
        return Performative.AGREE, c.ChangePosted(agreement_id, TERMINAL, ended.transfer_id, ended.amount)
    return None if order.state is c.OrderState.RESERVED else _line_answer(order, order.line(agreement_id))


def _line_answer(order: Order, line: c.OrderLine) -> tuple[Performative, c.Content]:
    """Return the answer about one agreement or addition of a settled order."""
    added = line.amended
    if order.state is c.OrderState.POSTED:
        made = _payment(line)
        return Performative.AGREE, made if added is None else c.ChangePosted(*added, made.transfer_id, made.amount)
    if added is not None:
        return Performative.REFUSE, c.ChangeRefused(*added, order.code, order.reason)
    return Performative.REFUSE, c.PaymentRefused(line.agreement_id, order.code, order.reason)


def _payment(line: c.OrderLine) -> c.PaymentMade:
    return c.PaymentMade(line.agreement_id, transfer_id_of(line.agreement_id, c.TransferKind.PAYMENT), line.cost)


def agreement_of(content: c.Content) -> str:
    """Return the agreement id that a resource or user asks about."""
    match content:
        case Signed(body=ContractChange() as change):
            return change.key
        case Signed(body=body):
            return body.agreement_id
        case c.PaymentQuery(agreement_id):
            return agreement_id
        case c.Unverified(reference=reference):
            return reference
    raise AssertionError(f"{type(content).__name__} does not ask about an agreement")


BAD_PRICE = "bad_price"
UNKNOWN = "unknown_agreement"
NOT_OWN = "not_own_account"


class BankParty(Party):
    """Everything the Banking Agent does."""

    def __init__(self, name: str, *, timing: Timing) -> None:
        super().__init__(name)
        self._timing = timing
        self._open: dict[str, Order] = {}
        self._expiry = Alarm(is_date=True)
        self.task(self._expiry, self._on_expiry)

    def start(self, now: Instant) -> list[Effect]:
        """Void expired orders, and load the open ones."""
        return [fx.SweepOrders()]

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a message or the ledger's answer.

        Raises:
            RemoteProtocolError: if a message is not for a bank, or not sealed by its sender.
        """
        return guarded("", lambda: self._on_event(event, now))

    def resume(self, reference: str, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Load the open orders from the ledger again; unanswered parties repeat their questions."""
        return [fx.SweepOrders()]

    def _on_event(self, event: Event, now: Instant) -> list[Effect]:
        match event:
            case Message() if changes.is_about(event):
                return [changes.asked(event, self.name, now, self._timing, self._open)]
            case Message():
                return self._on_message(event, now)
            case said.OrderStands():
                return self._on_order_stands(event, now)
            case said.OrdersSwept():
                return self._on_swept(event)
            case ChangeDecided(message):
                told = [] if event.order is None else self._changed(event.order, None)
                if event.change.is_posted:
                    return [*told, *changes.posted(event, self.name)]
                return [*told, self._not_done(message, event.change.code, event.change.reason)]
            case said.LedgerFound(message, c.DepositMade() as made):
                return self._on_deposit_made(message, made)
            case said.LedgerFound(message, content):
                return [reply(message, Performative.INFORM, content)]
            case said.LedgerRefused(message, code, detail):
                return [self._not_done(message, code, detail)]
            case _:
                return []

    # -- messages ------------------------------------------------------------------------------------------------

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        match content:
            case c.PaymentOrder():
                return self._on_order(message, content, now)
            case c.OrderWithdrawal():
                return self._on_withdrawal(message, content, now)
            case Signed(body=Agreement() as agreement):
                return self._on_agreement(message, content, agreement, now)
            case c.PaymentQuery(agreement_id):
                return [fx.LookUpAgreement(message, agreement_id)]
            case c.ClockQuery(query_id):
                return [reply(message, Performative.INFORM, c.ClockReading(query_id, now))]
            case c.AccountQuery():
                return self._on_account_query(message, content, now)
            case c.DepositOrder() | c.OverviewQuery():
                sealed_lately(message, Role.KEEPER, now, self._timing)
                return [fx.CarryOut(message)]
            case c.Unverified():
                return self._on_unverified(message, content)
            case c.NotUnderstood():
                return []
            case _:
                raise RemoteProtocolError(f"{type(content).__name__} is not a message for a bank")

    def _on_order(self, message: Message, order: c.PaymentOrder, now: Instant) -> list[Effect]:
        sealed_lately(message, Role.USER, now, self._timing)
        # its agreement shows later whether it is for a queued job
        longest = QUEUE_WAIT_MAX if len(order.lines) == 1 else ORDER_VALIDITY_MAX
        if order.valid_until > now + longest:
            return [self._too_long(message, order.order_id)]
        return [*self.tick(now), fx.CarryOut(message)]

    def _on_withdrawal(self, message: Message, wish: c.OrderWithdrawal, now: Instant) -> list[Effect]:
        sealed_lately(message, Role.USER, now, self._timing)
        if wish.valid_until > now + QUEUE_WAIT_MAX:
            return [self._too_long(message, wish.order_id)]
        return [fx.CarryOut(message)]

    def _too_long(self, message: Message, order_id: str) -> Send:
        most = f"{ORDER_VALIDITY_MAX // MINUTE} minutes, or for one queued job {QUEUE_WAIT_MAX // HOUR} hours"
        refused = c.OrderRefused(order_id, BAD_TERMS, f"the bank reserves money for at most {most}")
        return reply(message, Performative.REFUSE, refused)

    def _on_agreement(self, message: Message, signed: Signed, agreement: Agreement, now: Instant) -> list[Effect]:
        """TransactionUpdate (section 6.3): check both signatures, and the terms of the order.

        An invalid agreement from its resource voids the order, as the resource releases the slot then; from any other
        sender it leaves no trace.
        """
        order = self._open.get(agreement.order_id)
        if order is None:
            return [fx.LookUpAgreement(message, agreement.agreement_id)]
        named = {(line.agreement_id, line.resource) for line in order.lines}
        if (agreement.agreement_id, message.sender) not in named:
            return [self._refuse(message, agreement.agreement_id, UNKNOWN, "no order contains it with its sender")]
        if signed.signers != (agreement.user, agreement.resource):
            detail = "the agreement must be signed by its user and countersigned by its resource"
            return [fx.VoidOrder(message, order, BAD_SIGNATURE, detail)]
        stated = (agreement.bank, agreement.user, agreement.valid_until, agreement.units_total, agreement.resource)
        ordered = (self.name, order.user, order.valid_until, len(order.lines), message.sender)
        if unfair := price_problem(agreement):
            return [fx.VoidOrder(message, order, BAD_PRICE, unfair)]
        if stated != ordered or order_lines((agreement,))[0] not in order.lines:
            return [fx.VoidOrder(message, order, BAD_TERMS, "the agreement differs from its order")]
        if unclear := probable_start_problem(agreement):
            return [fx.VoidOrder(message, order, BAD_TERMS, unclear)]
        begins = agreement.offer.start
        if agreement.offer.in_queue:  # this message shows that the job has started
            begins = min(begins, now)
        return [fx.CountersignLine(message, agreement.agreement_id, begins)]

    def _on_account_query(self, message: Message, query: c.AccountQuery, now: Instant) -> list[Effect]:
        """BalanceRequest: check that the owner sealed it recently."""
        role = message.seal.role if message.seal is not None else Role.USER
        sealed_lately(message, Role.RESOURCE if role is Role.RESOURCE else Role.USER, now, self._timing)
        if query.account != message.sender:
            refused = c.RequestRefused(query.nonce, NOT_OWN, "only the owner may see an account")
            return [reply(message, Performative.REFUSE, refused)]
        return [fx.CarryOut(message)]

    def _on_unverified(self, message: Message, content: c.Unverified) -> list[Effect]:
        """Void the order of a document with invalid signatures, as its resource releases the slot."""
        for order in self._open.values():
            for line in order.lines:
                if (line.agreement_id, line.resource) == (content.reference, message.sender):
                    return [fx.VoidOrder(message, order, content.code, content.detail)]
        return [fx.LookUpAgreement(message, content.reference)]

    # -- the ledger's answers ------------------------------------------------------------------------------------

    def _on_order_stands(self, stands: said.OrderStands, now: Instant) -> list[Effect]:
        message, order = stands.message, stands.order
        if order is None:
            return [self._not_done(message, UNKNOWN, "no order contains it")]
        effects = self._changed(order, message)
        content = message.content
        match content:
            case c.PaymentOrder() | c.OrderWithdrawal():
                performative, answer = order_answer(order, now)
                return [*effects, reply(message, performative, answer)]
        answered = self._fate_of(message, order, stands.ended)
        told = any(isinstance(each, Send) and each.message.receiver == message.sender for each in effects)
        return effects if answered is None or told else [*effects, answered]

    def _changed(self, order: Order, message: Message | None) -> list[Effect]:
        """Keep open orders; tell all parties of an order that was just posted or voided."""
        if order.state is c.OrderState.RESERVED:
            self._keep(order)
            return []
        return [] if self._open.pop(order.order_id, None) is None else self._announce(order, message)

    def _announce(self, order: Order, message: Message | None) -> list[Effect]:
        """Tell the parties of an order that it was posted or voided, except a buyer that has withdrawn it."""
        told: list[tuple[str, Performative, c.Content]] = []
        withdrawn = message is not None and isinstance(message.content, c.OrderWithdrawal)
        if order.state is c.OrderState.VOIDED and not withdrawn:
            told.append((order.user, Performative.INFORM, _voided(order)))
        for line in order.lines:
            performative, content = _line_answer(order, line)
            if isinstance(content, c.PaymentRefused):
                performative = Performative.INFORM
            told.append((line.resource, performative, content))
        return [
            Send(Message(performative, self.name, receiver, order.order_id, content))
            for receiver, performative, content in told
        ]

    def _fate_of(self, message: Message, order: Order, ended: DecidedChange | None) -> Send | None:
        """Return the answer to a party of an agreement; other senders learn nothing."""
        agreement_id = agreement_of(message.content)
        mine = message.sender == order.user or any(
            (line.agreement_id, line.resource) == (agreement_id, message.sender) for line in order.lines
        )
        if not mine:
            return self._refuse(message, agreement_id, UNKNOWN, "no order contains it with its sender")
        answer = agreement_answer(order, agreement_id, ended)
        return None if answer is None else reply(message, *answer)

    def _not_done(self, message: Message, code: str, detail: str) -> Send:
        """Return the answer to a message whose question the ledger refuses, or whose change is void."""
        refused: c.Content
        match message.content:
            case c.PaymentOrder(order_id) | c.OrderWithdrawal(order_id):
                refused = c.OrderRefused(order_id, code, detail)
            case (
                c.DepositOrder(reference)
                | c.RefundOrder(reference)
                | c.AccountQuery(reference)
                | c.OverviewQuery(reference)
            ):
                refused = c.RequestRefused(reference, code, detail)
            case c.ChangeWithdrawal(agreement_id, number):
                refused = c.ChangeRefused(agreement_id, number, code, detail)
            case Signed(body=ContractChange() as body):
                why = changes.UNKNOWN_ORDER if body.grows else code
                refused = c.ChangeRefused(body.agreement_id, body.number, why, detail)
            case content:
                refused = c.PaymentRefused(agreement_of(content), UNKNOWN, detail)
        return reply(message, Performative.REFUSE, refused)

    def _on_swept(self, swept: said.OrdersSwept) -> list[Effect]:
        reserved = {order.order_id for order in swept.reserved}
        for order_id in [each for each in self._open if each not in reserved]:
            del self._open[order_id]
        for order in swept.reserved:
            self._keep(order)
        return [effect for order in swept.voided for effect in self._announce(order, None)]

    def _on_deposit_made(self, message: Message, made: c.DepositMade) -> list[Effect]:
        order = message.content
        assert isinstance(order, c.DepositOrder)
        what = f"{credits_text(made.amount)} credits to {order.account} ({made.deposit_id})"
        return [fx.Report(KeeperOrdered(message.sender, "deposit", what)), reply(message, Performative.AGREE, made)]

    # -- common --------------------------------------------------------------------------------------------------

    def _keep(self, order: Order) -> None:
        self._open[order.order_id] = order
        self._expiry.deadline = earliest(self._expiry.deadline, order.valid_until)

    def _on_expiry(self, now: Instant) -> list[Effect]:
        """Void expired orders; an order that has ended before leaves its alarm behind."""
        self._expiry.deadline = min((order.valid_until for order in self._open.values()), default=None)
        return [] if self._expiry.deadline is None or now < self._expiry.deadline else [fx.SweepOrders()]

    def _refuse(self, message: Message, agreement_id: str, code: str, detail: str) -> Send:
        return reply(message, Performative.REFUSE, c.PaymentRefused(agreement_id, code, detail))
