"""Carries out the effects of the pure bank on its ledger, and returns the answers."""

from __future__ import annotations

from ramp.errors import LedgerRefusal
from ramp.ledger.entry import Grounds, Order, ended
from ramp.ledger.interface import Ledger
from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.agreement import TERMINAL, ContractChange, Signed
from ramp.model.instant import Instant
from ramp.protocol import effects as fx
from ramp.protocol import events as said

TRADES_PER_PAGE = 250
"""Lines of an overview in one message; with 300 bytes each they stay far below a message's size limit."""


class BankLedger:
    """Carries out the effects of the bank on its ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def answer(self, effect: fx.AskLedger, now: Instant) -> said.LedgerAnswer:
        """Carry out one effect; it is durable when this returns."""
        if isinstance(effect, fx.SweepOrders):
            return said.OrdersSwept(self.ledger.expire_orders(now), self.ledger.open_orders())
        try:
            return self._answer(effect, now)
        except LedgerRefusal as refusal:
            return said.LedgerRefused(effect.message, refusal.code, refusal.reason)

    def _answer(self, effect: fx.AboutMessage, now: Instant) -> said.LedgerAnswer:
        ledger, message = self.ledger, effect.message
        match effect:
            case fx.CarryOut():
                return self._carry_out(message, now)
            case fx.PostChange(_, grounds):
                assert isinstance(message.content, Signed)
                return self._post(message, message.content.change, grounds, now)
            case fx.VoidOrder(_, order, code, detail):
                what, evidence = (order.order_id, order.user, order.valid_until), _evidence(message)
                void = ledger.void_order(*what, at=now, code=code, reason=detail, evidence=evidence)
                return said.OrderStands(message, void)
            case fx.CountersignLine(_, agreement_id, starts_at):
                order = ledger.countersign(agreement_id, at=now, starts_at=starts_at, evidence=_evidence(message))
                return said.OrderStands(message, order)
            case fx.LookUpAgreement(_, agreement_id):
                found = ledger.order_of(agreement_id)
                order_now = None if found is None else self._at(found, now)
                return said.OrderStands(message, order_now, ended(ledger.changes(agreement_id)))

    def _carry_out(self, message: Message, now: Instant) -> said.LedgerAnswer:
        ledger, user, evidence = self.ledger, message.sender, _evidence(message)
        match message.content:
            case c.PaymentOrder(order_id, lines, valid_until):
                ledger.balance(user)  # refuses a user without an account, and records nothing
                order = ledger.reserve_order(order_id, user, lines, valid_until, at=now, evidence=evidence)
                return said.OrderStands(message, order)
            case c.OrderWithdrawal(order_id, valid_until, reason):
                void = ledger.void_order(
                    order_id, user, valid_until, at=now, code="withdrawn", reason=reason, evidence=evidence
                )
                return said.OrderStands(message, void)
            case c.ChangeWithdrawal(agreement_id, number):
                undone = ledger.void_change(agreement_id, number, user, at=now, evidence=evidence)
                return said.ChangeDecided(message, undone)
            case c.RefundOrder(agreement_id):
                end = ContractChange(agreement_id, TERMINAL, "", user="", resource="", bank="", issued_at=now)
                return self._post(message, end, Grounds.KEEPER, now)
            case c.DepositOrder(deposit_id, account, amount, memo):
                made = ledger.deposit(deposit_id, account, amount, at=now, memo=memo, evidence=evidence)
                return said.LedgerFound(message, c.DepositMade(deposit_id, made.transfer_id, made.amount))
            case c.AccountQuery() as query:
                return said.LedgerFound(message, self._statement(query, now))
            case c.OverviewQuery() as query:
                return said.LedgerFound(message, self._overview(query, now))
        raise AssertionError(f"{type(message.content).__name__} asks nothing of a ledger")

    def _at(self, order: Order, now: Instant) -> Order:
        """Return an order at present; one that has expired is void even before the next sweep."""
        if order.state is not c.OrderState.RESERVED or now < order.valid_until:
            return order
        self.ledger.expire_orders(now)
        expired = self.ledger.order(order.order_id)
        assert expired is not None, "orders are never deleted"
        return expired

    # -- changes -------------------------------------------------------------------------------------------------

    def _post(self, message: Message, change: ContractChange, grounds: Grounds, now: Instant) -> said.ChangeDecided:
        decided = self.ledger.post_change(change, grounds, at=now, evidence=_evidence(message))
        payment = self.ledger.transfer(change.agreement_id)
        assert payment is not None, "the ledger changes no agreement without a payment"
        order = self.ledger.order_of(change.agreement_id) if change.is_failure else None
        return said.ChangeDecided(message, decided, payment.debit_account, payment.credit_account, order)

    # -- what an owner sees --------------------------------------------------------------------------------------

    def _statement(self, query: c.AccountQuery, now: Instant) -> c.AccountStatement:
        balance = self.ledger.balance(query.account)
        wants_lines = query.since is not None or query.until is not None
        lines = self.ledger.statement(query.account, query.since, query.until) if wants_lines else ()
        amounts = balance.posted, balance.reserved, balance.credit_limit
        return c.AccountStatement(query.nonce, query.account, *amounts, now, lines)

    def _overview(self, query: c.OverviewQuery, now: Instant) -> c.MarketOverview:
        found = self.ledger.overview(query.since, query.until, after=query.after, limit=TRADES_PER_PAGE)
        accounts = tuple(
            c.AccountLine(
                each.account.account_id, each.account.kind.value, each.posted, each.reserved, each.credit_limit
            )
            for each in (() if query.after else self.ledger.balances())
        )
        return c.MarketOverview(query.query_id, now, accounts, found.trades, found.next_after or 0)


def _evidence(message: Message) -> str:
    """Return the signed document or the sealed message that justifies a change; empty if it is neither."""
    if isinstance(message.content, Signed):
        return message.content.document
    return "" if message.seal is None else message.seal.text
