"""Carries out the effects of the pure bank on its ledger, and returns the answers."""

from __future__ import annotations

from ramp.errors import LedgerRefusal
from ramp.ledger.contract_change import ChangeTerms, Grounds, ended
from ramp.ledger.entry import Order
from ramp.ledger.interface import Ledger
from ramp.model.agreement import TERMINAL, ContractChange
from ramp.model.contents import OrderState
from ramp.model.instant import Instant
from ramp.model.sizes.amended import state_digest
from ramp.protocol import effects as fx
from ramp.protocol import events as said

NOT_THEIR_PAYMENT = "bad_terms"
"""Code of a refund requested by other parties than those of the payment."""

NOT_THAT_OFFER = "unknown_agreement"
"""Code of a failure report about another offer than the ordered one."""

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
            return said.LedgerRefused(effect.call_id, refusal.code, refusal.reason)

    def _answer(self, effect: fx.AboutLedger, now: Instant) -> said.LedgerAnswer:
        ledger = self.ledger
        match effect:
            case fx.PostDeposit(call_id, deposit_id, account, amount, memo, evidence):
                transfer = ledger.deposit(deposit_id, account, amount, at=now, memo=memo, evidence=evidence)
                return said.DepositPosted(call_id, transfer)
            case fx.PostChange():
                return self._post(effect, now)
            case fx.VoidChange(call_id, agreement_id, number, user, evidence):
                void = ledger.void_change(agreement_id, number, user, at=now, evidence=evidence)
                return said.ChangeDecided(call_id, void)
            case fx.LookUpAccount():
                return self._account(effect)
            case fx.LookUpOverview(call_id, since, until, after):
                return said.OverviewLookedUp(call_id, ledger.overview(since, until, after=after, limit=TRADES_PER_PAGE))
            case fx.ReserveFunds(call_id, order_id, user, lines, valid_until, evidence):
                ledger.balance(user)  # refuses a user without an account, and records nothing
                order = ledger.reserve_order(order_id, user, lines, valid_until, at=now, evidence=evidence)
                return said.OrderStands(call_id, self._at(order, now))
            case fx.VoidOrder(call_id, order_id, user, valid_until, code, detail, evidence):
                order = ledger.void_order(
                    order_id, user, valid_until, at=now, code=code, reason=detail, evidence=evidence
                )
                return said.OrderStands(call_id, self._at(order, now))
            case fx.CountersignLine(call_id, agreement_id, starts_at, evidence):
                order = ledger.countersign(agreement_id, at=now, starts_at=starts_at, evidence=evidence)
                return said.OrderStands(call_id, self._at(order, now))
            case fx.LookUpAgreement(call_id, agreement_id):
                found = ledger.order_of(agreement_id)
                order_now = None if found is None else self._at(found, now)
                return said.OrderStands(call_id, order_now, ended(ledger.changes(agreement_id)))

    def _at(self, order: Order, now: Instant) -> Order:
        """Return an order at present; one that has expired is void even before the next sweep."""
        if order.state is not OrderState.RESERVED or now < order.valid_until:
            return order
        self.ledger.expire_orders(now)
        expired = self.ledger.order(order.order_id)
        assert expired is not None, "orders are never deleted"
        return expired

    # -- changes -------------------------------------------------------------------------------------------------

    def _post(self, effect: fx.PostChange, now: Instant) -> said.ChangeDecided:
        body = effect.change
        if body is not None and body.is_failure:
            return self._fail(effect, body, now)
        payment = self.ledger.transfer(effect.agreement_id)
        if body is None:
            terms = ChangeTerms(effect.agreement_id, TERMINAL, effect.grounds)
        else:
            terms = _terms_of(body, effect.grounds)
            parties = body.user, body.resource
            if body.is_terminal and payment and parties != (payment.debit_account, payment.credit_account):
                reason = "the payment is not between the two whom the cancellation names"
                raise LedgerRefusal(NOT_THEIR_PAYMENT, reason)
        decided = self.ledger.post_change(terms, at=now, evidence=effect.evidence)
        assert payment is not None, "the ledger changes no agreement without a payment"
        return said.ChangeDecided(effect.call_id, decided, payment.debit_account, payment.credit_account)

    def _fail(self, effect: fx.PostChange, body: ContractChange, now: Instant) -> said.ChangeDecided:
        """End an agreement by its seller's failure, which voids an order that is not posted."""
        order = self.ledger.order_of(body.agreement_id)
        if order is None or (order.user, order.line(body.agreement_id).offer_id) != (body.user, body.offer_id):
            raise LedgerRefusal(NOT_THAT_OFFER, f"no order of theirs names {body.agreement_id} for {body.offer_id}")
        decided = self.ledger.post_change(_terms_of(body, effect.grounds), at=now, evidence=effect.evidence)
        order = self.ledger.order(order.order_id)
        assert order is not None, "orders are never deleted"
        return said.ChangeDecided(effect.call_id, decided, body.user, body.resource, order)

    # -- what an owner sees --------------------------------------------------------------------------------------

    def _account(self, effect: fx.LookUpAccount) -> said.AccountLookedUp:
        balance = self.ledger.balance(effect.account)
        wants_lines = effect.since is not None or effect.until is not None
        lines = self.ledger.statement(effect.account, effect.since, effect.until) if wants_lines else ()
        return said.AccountLookedUp(effect.call_id, balance, lines)


def _terms_of(body: ContractChange, grounds: Grounds) -> ChangeTerms:
    return ChangeTerms(
        body.agreement_id,
        body.number,
        grounds,
        body.user,
        body.resource,
        body.amount,
        body.previous,
        "" if body.is_terminal else state_digest(body),
        body.valid_until,
        body.reason or str(body.code or ""),
    )
