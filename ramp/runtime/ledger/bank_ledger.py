"""Carries out the effects of the pure bank on its ledger, and returns the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ramp.errors import LedgerRefusal
from ramp.ledger.contract_change import ChangeTerms, DecidedChange, Grounds
from ramp.ledger.entry import Order
from ramp.ledger.interface import Ledger
from ramp.model.agreement import TERMINAL, ContractChange
from ramp.model.contents import AccountLine, ChangePosted, OrderState, PaymentMade, TransferKind
from ramp.model.contents.accounts import REPLAYED
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.sizes.amended import state_digest
from ramp.protocol import effects as fx
from ramp.protocol import events as said
from ramp.protocol.effects import PostChange, VoidChange
from ramp.protocol.events import ChangeDecided

NONCE_LIFETIME: Duration = 30 * MINUTE
"""Time to remember nonces of account queries; the queries themselves expire much earlier."""

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

    def answer(self, effect: fx.AskLedger, now: Instant) -> said.Answer:
        """Carry out one effect; it is durable when this returns."""
        match effect:
            case fx.SweepOrders():
                return self._sweep(now)
            case fx.PostDeposit():
                return self._deposit(effect, now)
            case PostChange():
                return self._post(effect, now)
            case VoidChange():
                return self._void(effect, now)
            case fx.LookUpAccount():
                return self._account(effect, now)
            case fx.LookUpOverview():
                return self._overview(effect)
            case _:
                try:
                    order = self._order(effect, now)
                except LedgerRefusal as refusal:
                    return said.OrderStands(effect.call_id, None, refusal.code, refusal.reason)
                return said.OrderStands(effect.call_id, None if order is None else self._standing(order))

    # -- orders --------------------------------------------------------------------------------------------------

    def _order(
        self,
        effect: fx.ReserveFunds | fx.CountersignLine | fx.VoidOrder | fx.LookUpAgreement,
        now: Instant,
    ) -> Order | None:
        ledger = self.ledger
        order: Order | None
        match effect:
            case fx.ReserveFunds(_, order_id, user, lines, valid_until, evidence):
                ledger.balance(user)  # refuses a user without an account, and records nothing
                order = ledger.reserve_order(order_id, user, lines, valid_until, at=now, evidence=evidence)
            case fx.CountersignLine(_, agreement_id, starts_at, evidence):
                order = ledger.countersign(agreement_id, at=now, starts_at=starts_at, evidence=evidence)
            case fx.VoidOrder(_, order_id, user, valid_until, code, detail, evidence):
                order = ledger.void_order(
                    order_id, user, valid_until, at=now, code=code, reason=detail, evidence=evidence
                )
            case fx.LookUpAgreement(_, agreement_id):
                order = ledger.order_of(agreement_id)
        if order is not None and order.state is OrderState.RESERVED and now >= order.valid_until:
            ledger.expire_orders(now)  # it has expired, even before the next sweep
            order = ledger.order(order.order_id)
        return order

    def _standing(self, order: Order) -> said.OrderStanding:
        made: list[PaymentMade] = []
        refunds: list[ChangePosted] = []
        if order.state is OrderState.POSTED:
            for line in order.lines:
                paid = self.ledger.transfer(line.agreement_id)
                assert paid is not None, "a posted order's transfers are posted with it"
                made.append(PaymentMade(line.agreement_id, paid.transfer_id, paid.amount))
                refund = self.ledger.transfer(line.agreement_id, TransferKind.REFUND)
                if refund is not None:
                    refunds.append(ChangePosted(line.agreement_id, TERMINAL, refund.transfer_id, -refund.amount))
        return said.OrderStanding(
            order.order_id,
            order.user,
            order.lines,
            order.valid_until,
            order.state,
            order.code,
            order.reason,
            tuple(made),
            tuple(refunds),
            tuple(line for line in order.lines if line.agreement_id not in order.countersigned),
        )

    def _sweep(self, now: Instant) -> said.OrdersSwept:
        voided = self.ledger.expire_orders(now)
        reserved = self.ledger.open_orders()
        return said.OrdersSwept(tuple(map(self._standing, voided)), tuple(map(self._standing, reserved)))

    # -- refunds and deposits ------------------------------------------------------------------------------------

    def _post(self, effect: PostChange, now: Instant) -> ChangeDecided:
        body = effect.change
        payment = self.ledger.transfer(effect.agreement_id)
        parties = ("", "") if payment is None else (payment.debit_account, payment.credit_account)
        if body is None:
            terms = ChangeTerms(effect.agreement_id, TERMINAL, Grounds.KEEPER)
        else:
            terms = _terms_of(body, by_buyer=effect.by_buyer)
            if body.is_failure:
                return self._fail(effect, body, terms, now)
            if body.is_terminal and payment is not None and parties != (body.user, body.resource):
                reason = "the payment is not between the two whom the cancellation names"
                unpaid = (effect.call_id, effect.agreement_id, TERMINAL)
                return ChangeDecided(*unpaid, code=NOT_THEIR_PAYMENT, detail=reason)
        decided = self._decided(
            effect, terms.number, partial(self.ledger.post_change, terms, at=now, evidence=effect.evidence)
        )
        return replace(decided, user=parties[0], resource=parties[1])

    def _fail(self, effect: PostChange, body: ContractChange, terms: ChangeTerms, now: Instant) -> ChangeDecided:
        """End an agreement by its seller's failure, which voids an order that is not posted."""
        order = self.ledger.order_of(body.agreement_id)
        if order is None or (order.user, order.line(body.agreement_id).offer_id) != (body.user, body.offer_id):
            detail = f"no order of theirs names {body.agreement_id} for {body.offer_id}"
            return ChangeDecided(effect.call_id, body.agreement_id, TERMINAL, code=NOT_THAT_OFFER, detail=detail)
        decided = self._decided(
            effect, TERMINAL, partial(self.ledger.post_change, terms, at=now, evidence=effect.evidence)
        )
        order = self.ledger.order(order.order_id)
        assert order is not None, "orders are never deleted"
        voided = None if order.state is OrderState.POSTED else self._standing(order)
        return replace(decided, user=body.user, resource=body.resource, voided=voided)

    def _void(self, effect: VoidChange, now: Instant) -> ChangeDecided:
        about = (effect.agreement_id, effect.number, effect.user)
        void = partial(self.ledger.void_change, *about, at=now, evidence=effect.evidence)
        return self._decided(effect, effect.number, void)

    def _decided(
        self, effect: PostChange | VoidChange, number: int, decide: Callable[[], DecidedChange]
    ) -> ChangeDecided:
        about = (effect.call_id, effect.agreement_id, number)
        try:
            decided = decide()
        except LedgerRefusal as refusal:
            return ChangeDecided(*about, code=refusal.code, detail=refusal.reason)
        if not decided.is_posted:
            return ChangeDecided(*about, code=decided.code, detail=decided.reason)
        return ChangeDecided(*about, decided.transfer_id, decided.amount)

    def _deposit(self, effect: fx.PostDeposit, now: Instant) -> said.DepositPosted:
        try:
            transfer = self.ledger.deposit(
                effect.deposit_id, effect.account, effect.amount, at=now, memo=effect.memo, evidence=effect.evidence
            )
        except LedgerRefusal as refusal:
            return said.DepositPosted(effect.call_id, effect.deposit_id, "", 0, refusal.code, refusal.reason)
        return said.DepositPosted(effect.call_id, effect.deposit_id, transfer.transfer_id, transfer.amount)

    # -- what owner and keeper see -------------------------------------------------------------------------------

    def _account(self, effect: fx.LookUpAccount, now: Instant) -> said.AccountLookedUp:
        wants_lines = effect.since is not None or effect.until is not None
        try:
            if not self.ledger.use_nonce(effect.account, effect.nonce, effect.issued_at + NONCE_LIFETIME, now):
                replayed = "this query has been answered before"
                return said.AccountLookedUp(effect.call_id, 0, 0, 0, (), REPLAYED, replayed)
            balance = self.ledger.balance(effect.account)
            lines = self.ledger.statement(effect.account, effect.since, effect.until) if wants_lines else ()
        except LedgerRefusal as refusal:
            return said.AccountLookedUp(effect.call_id, 0, 0, 0, (), refusal.code, refusal.reason)
        return said.AccountLookedUp(effect.call_id, balance.posted, balance.reserved, balance.credit_limit, lines)

    def _overview(self, effect: fx.LookUpOverview) -> said.OverviewLookedUp:
        found = self.ledger.overview(effect.since, effect.until, after=effect.after, limit=TRADES_PER_PAGE)
        accounts = tuple(
            AccountLine(each.account.account_id, each.account.kind.value, each.posted, each.reserved, each.credit_limit)
            for each in found.balances
        )
        first = accounts if effect.after == 0 else ()
        return said.OverviewLookedUp(effect.call_id, first, found.trades, found.next_after or 0)


def _terms_of(body: ContractChange, *, by_buyer: bool) -> ChangeTerms:
    return ChangeTerms(
        body.agreement_id,
        body.number,
        Grounds.SELLER if body.is_failure else Grounds.BUYER if by_buyer else Grounds.BOTH,
        body.user,
        body.resource,
        body.amount,
        body.previous,
        "" if body.is_terminal else state_digest(body),
        body.valid_until,
        body.reason or str(body.code or ""),
    )
