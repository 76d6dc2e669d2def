"""The bank's vote and the second phase of the two-phase commit, for the user (paper sections 5.1.1 step 8, 5.1.2).

When all slots are held, the bank is asked to reserve the whole cost. The decision is recorded before the first CONFIRM
is sent: a user that restarts with that record continues, one that restarts without it voids the order. The bank pays
all units at once, when it has the countersigned agreements of all. So nothing needs a rollback: if a unit fails or
takes too long, the user asks the bank to void the order, and its answer (posted or void) is final.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role, Seal
from ramp.protocol import records as rc
from ramp.protocol.agreement_terms import HeldUnit, OrderWord, order_lines
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, SaveAgreement, Send, cancel_hold
from ramp.protocol.machine import StateMachine
from ramp.protocol.outcome import BoughtUnit
from ramp.protocol.timing import Pace, Retry, earliest
from ramp.protocol.transition_tables import CONFIRMATION, ConfirmationState
from ramp.protocol.user.confirmed_unit import ConfirmedUnit, UnitStage, checked_failure

S = ConfirmationState

ORDER_EXPIRED: Final = "expired"
"""Code of the bank's answer to an order that expired by its clock (`ramp.ledger.refusals`)."""


OPEN = (UnitStage.CONFIRMING, UnitStage.CONFIRMED)


@dataclass(frozen=True, slots=True)
class ConfirmationResult:
    """How the confirmation ended: everything paid, or nothing.

    Attributes:
        posted: whether the order is paid.
        reason: one sentence if it is not paid, or if a paid unit is not available.
        blamed: resources whose failure or silence voided the order; the purchase may continue with others.
        claims: failures of paid units that their resources have signed.
        expired: whether the order expired by the bank's clock.
    """

    posted: bool
    reason: str
    units: tuple[BoughtUnit, ...] = ()
    blamed: frozenset[str] = frozenset()
    claims: tuple[Signed, ...] = ()
    expired: bool = False


class Confirmation(StateMachine[ConfirmationState]):
    """The second phase of one order.

    Args:
        agreements: one a unit, all of one request and one order.
    """

    def __init__(self, agreements: Sequence[Agreement], *, pace: Pace) -> None:
        first = agreements[0]
        super().__init__(first.request_id, CONFIRMATION, S.NEW)
        self.order_id = first.order_id
        self.valid_until = first.valid_until
        self.agreements = tuple(agreements)
        self.result: ConfirmationResult | None = None
        self._user = first.user
        self._bank = first.bank
        self._pace = pace
        self._units = {agreement.agreement_id: ConfirmedUnit(agreement, Retry(pace)) for agreement in agreements}
        self._vote: tuple[c.FundsReserved, Seal] | None = None
        self._to_bank = Retry(pace)
        self._reason = ""
        self._blamed: frozenset[str] = frozenset()

    @property
    def decided(self) -> bool:
        return self._vote is not None

    @property
    def doubt(self) -> str:
        if self.state is not S.VOIDING:
            return ""
        return f"{self._reason}; the bank has been asked to void order {self.order_id}, and its answer decides"

    @property
    def _waits(self) -> bool:
        return any(each.offer.in_queue for each in self.agreements)

    @property
    def deadline(self) -> Instant | None:
        """When to call `on_timer` next, or None."""
        if self.state is S.ENDED:
            return None
        return earliest(self._to_bank.deadline, *(unit.retry.due for unit in self._units.values()))

    def start(self, held: Sequence[HeldUnit], now: Instant) -> list[Effect]:
        """Record the agreements for these holds, then ask the bank for its vote."""
        self._enter(S.RESERVING, "start")
        # there is only one bank, so it may take as long as the holds last
        self._to_bank.begin(now, min(unit.held_until for unit in held) - self._pace.timing.decision_margin)
        seals = tuple(unit.seal for unit in held)
        asked = rc.FundsAsked(self.conversation_id, self.order_id, self.agreements, seals, now)
        return [Persist(asked), self._ask_bank(), *(unit.advanced() for unit in self._units.values())]

    def recover(self, records: Sequence[rc.Record], now: Instant) -> list[Effect]:
        """Resume an order from its records; without a decision it is voided."""
        void: rc.VoidAsked | None = None
        for record in records:
            match record:
                case rc.UnitSettled(agreement_id=agreement_id) if unit := self._units.get(agreement_id):
                    unit.stage, unit.transfer_id = UnitStage.SETTLED, record.transfer_id
                case rc.FailureTold(failure=failure) if unit := self._units.get(failure.body.agreement_id):
                    unit.stage, unit.failed = UnitStage.FAILED, failure
                case rc.CommitDecided(order_id=self.order_id):
                    self._vote = record.vote, record.vote_seal
                case rc.VoidAsked(order_id=self.order_id):
                    void = record
                case rc.OrderClosed(order_id=self.order_id):
                    return self._recover_posted(record.transfers)
        if self._all_settled:
            return self._recover_posted(())
        failed = any(unit.failed is not None for unit in self._units.values())
        if self._vote is None or void is not None or failed:
            undecided = "the user agent was interrupted before the decision" if not failed else "a unit has failed"
            self._resume(S.VOIDING)
            return self._ask_to_void(void.reason if void else undecided, now)
        self._resume(S.CONFIRMING)
        return self._confirm_all(now)

    def on_message(self, message: Message, now: Instant) -> list[Effect]:
        """Take a message of the bank or a resource; late and repeated ones change nothing.

        A HoldRefused must be about one of the units (`concerns`).

        Raises:
            RemoteProtocolError: if the content is unexpected, or the sender did not seal it.
        """
        content = message.content
        if isinstance(content, OrderWord):
            if content.order_id != self.order_id:
                return []  # an earlier attempt, which has ended
            return self._on_bank(content, said_by(message, self._bank, Role.BANK), now)
        match content:
            case c.Confirmed() | c.Settled():
                unit = self._units.get(content.agreement_id)
                if unit is None:
                    return []
                said_by(message, unit.resource, Role.RESOURCE)
                return self._on_resource(unit, content, now)
            case Signed(body=ContractChange(agreement_id=agreement_id)):
                unit = self._units.get(agreement_id)
                return [] if unit is None else self._on_failure(unit, content, now)
            case c.HoldRefused():
                return self._on_hold_refused(message, content, now)
            case c.NotUnderstood():
                return []
        raise RemoteProtocolError(f"{type(content).__name__} is not a message of a commitment")

    def concerns(self, offer_id: str) -> bool:
        """Return whether an offer is being bought here."""
        return any(unit.agreement.offer.offer_id == offer_id for unit in self._units.values())

    def withdraw(self, now: Instant) -> list[Effect]:
        """Withdraw the request; ignored after the decision, except for a job that has not started."""
        if self.state is S.RESERVING or (self.state is S.CONFIRMING and self._waits):
            return self._void("the user withdrew the request", "RequestWithdrawn", now)
        return []

    def note_refund(self, agreement_id: str) -> None:
        """Record that the bank has refunded a unit."""
        if agreement_id in self._units:
            self._units[agreement_id].refunded = True

    def on_timer(self, now: Instant) -> list[Effect]:
        """Repeat messages, or void the order if it takes too long."""
        effects: list[Effect] = []
        if self._to_bank.is_over(now):
            if self.state is S.RESERVING:
                effects = self._void("the bank does not answer", "deadline", now)
            else:
                self._blamed = self._laggards()
                reason = f"{', '.join(sorted(self._blamed))} did not settle in time"
                effects = self._void(reason, "deadline", now)
        if self._to_bank.is_due(now):
            self._to_bank.again(now)
            effects.append(self._ask_bank())
        if self.state is S.CONFIRMING and self._vote is not None:
            for unit in self._units.values():
                if unit.stage in OPEN and unit.retry.is_due(now):
                    unit.retry.again(now)
                    effects.append(unit.confirm(*self._vote))
        return effects

    def clock_set(self, by: Duration) -> None:
        for retry in (self._to_bank, *(unit.retry for unit in self._units.values())):
            retry.clock_set(by)

    def holds_end(self, at: Instant | None) -> None:
        """Shorten the wait if a repeated vote says that a hold ends sooner."""
        if self.state is S.RESERVING and at is not None:
            self._to_bank.limit = at - self._pace.timing.decision_margin

    # -- the bank ------------------------------------------------------------------------------------------------

    def _ask_bank(self) -> Send:
        """Return the present question to the bank: the order, or its withdrawal."""
        asked: c.Content = c.OrderWithdrawal(self.order_id, self.valid_until, self._reason)
        if self.state is S.RESERVING:
            asked = c.PaymentOrder(self.order_id, order_lines(self.agreements), self.valid_until)
        return Send(
            Message(
                Performative.REQUEST,
                self._user,
                self._bank,
                self.conversation_id,
                asked,
                reply_with=self.order_id,
            )
        )

    def _on_bank(self, content: OrderWord, seal: Seal, now: Instant) -> list[Effect]:
        if self.state is S.ENDED:
            return []
        if isinstance(content, c.FundsReserved):
            return self._on_reserved(content, seal, now) if self.state is S.RESERVING else []
        if isinstance(content, c.OrderPosted):
            return self._on_posted(content, seal, now) if self.state is S.VOIDING else []
        if isinstance(content, c.OrderRefused) and self.state is S.CONFIRMING:
            return []  # a late copy: a reserved order cannot be refused
        self._to_bank.answered(now)
        detail = content.detail or content.code
        reason = self._reason or f"the bank refuses the order: {detail}"
        late = self._waits and content.code == ORDER_EXPIRED
        if isinstance(content, c.OrderVoided) and not self._reason:
            reason = f"the bank has voided the order: {detail}"
            reason += "; the job has not started by then, so you pay nothing" if late else ""
        closed = rc.OrderClosed(self.conversation_id, self.order_id, (), reason, seal, now)
        let_go = self.state is S.VOIDING and not self.decided  # voiding has cancelled the holds
        self._enter(S.ENDED, type(content).__name__)
        if isinstance(content, c.OrderVoided) and self.decided and not late:
            failed = frozenset(unit.resource for unit in self._units.values() if unit.stage is UnitStage.FAILED)
            awaited = frozenset(line.resource for line in content.awaited)
            self._blamed = failed or awaited & self._blamed or awaited or self._blamed
        self.result = ConfirmationResult(False, reason, blamed=self._blamed, expired=content.code == ORDER_EXPIRED)
        effects: list[Effect] = [Persist(closed), *([] if let_go else self._cancel_holds())]
        for unit in self._units.values():
            if unit.stage is not UnitStage.FAILED:
                unit.stage = UnitStage.VOIDED
                effects.append(unit.advanced())
        return effects

    def _on_reserved(self, vote: c.FundsReserved, seal: Seal, now: Instant) -> list[Effect]:
        if (vote.user, vote.lines, vote.valid_until) != (self._user, order_lines(self.agreements), self.valid_until):
            raise RemoteProtocolError("the bank's vote is for another order")
        self._to_bank.answered(now)
        margin = self._pace.timing.decision_margin
        limit = earliest(self._to_bank.limit, self._to_bank.begun + vote.valid_for - margin)
        if limit is not None and limit < now:
            reason = "a hold or the reserved money was about to expire before all had voted"
            return self._void(reason, "FundsReserved", now)
        self._enter(S.CONFIRMING, "FundsReserved")
        self._vote = vote, seal
        return [
            Persist(rc.CommitDecided(self.conversation_id, self.order_id, vote, seal, now)),
            *self._confirm_all(now),
        ]

    def _on_posted(self, posted: c.OrderPosted, seal: Seal, now: Instant) -> list[Effect]:
        self._to_bank.answered(now)
        if {payment.agreement_id for payment in posted.transfers} != self._units.keys():
            raise RemoteProtocolError("the bank has posted another order")
        effects: list[Effect] = [
            Persist(rc.OrderClosed(self.conversation_id, self.order_id, posted.transfers, "", seal, now))
        ]
        self._enter(S.ENDED, "OrderPosted")
        for unit in self._units.values():
            if unit.failed is None:
                unit.stage = UnitStage.SETTLED
                effects.append(unit.advanced())
        self._conclude_posted(posted.transfers)
        return effects

    def _recover_posted(self, transfers: Sequence[c.PaymentMade]) -> list[Effect]:
        """Resume a posted order; a void one is never resumed."""
        self._resume(S.ENDED)
        self._conclude_posted(transfers)
        return []

    # -- voiding -------------------------------------------------------------------------------------------------

    def _void(self, reason: str, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.VOIDING, stimulus)
        return self._ask_to_void(reason, now)

    def _ask_to_void(self, reason: str, now: Instant) -> list[Effect]:
        self._reason = reason
        for unit in self._units.values():
            unit.retry.stop()
        self._to_bank.begin(now)
        asked = rc.VoidAsked(self.conversation_id, self.order_id, reason, now)
        return [*([] if self.decided else self._cancel_holds()), Persist(asked), self._ask_bank()]

    def _laggards(self) -> frozenset[str]:
        """Return the resources that delay the order: the silent ones, else all that have not settled."""
        silent = {unit.resource for unit in self._units.values() if unit.stage is UnitStage.CONFIRMING}
        return frozenset(silent or {unit.resource for unit in self._units.values() if unit.stage in OPEN})

    def _cancel_holds(self) -> list[Effect]:
        """Cancel every hold; firm slots end by the bank's answer, and holds expire."""
        return [
            cancel_hold(self._user, unit.resource, self.conversation_id, unit.agreement.offer.offer_id)
            for unit in self._units.values()
            if unit.stage is not UnitStage.FAILED
        ]

    # -- confirming ----------------------------------------------------------------------------------------------

    def _confirm_all(self, now: Instant) -> list[Effect]:
        assert self._vote is not None
        self._to_bank.limit = now + self._pace.patience(self._pace.timing.confirm_limit)
        effects: list[Effect] = []
        for unit in self._units.values():
            if unit.stage is not UnitStage.SETTLED:
                unit.stage = UnitStage.CONFIRMING
                unit.retry.begin(now)
                effects += [unit.confirm(*self._vote), unit.advanced()]
        return effects

    def _on_resource(self, unit: ConfirmedUnit, content: c.Confirmed | c.Settled, now: Instant) -> list[Effect]:
        if isinstance(content, c.Settled):
            return self._settle(unit, content, now)
        if self.state is not S.CONFIRMING or unit.stage is not UnitStage.CONFIRMING:
            return []
        unit.stage = UnitStage.CONFIRMED
        unit.retry.heard(now)
        if self._waits:  # the bank refunds by itself after the deadline; ask if nothing arrives
            self._to_bank.limit = self.valid_until + self._pace.patience(self._pace.timing.confirm_limit)
        return [unit.advanced()]

    def _on_failure(self, unit: ConfirmedUnit, failure: Signed, now: Instant) -> list[Effect]:
        if self.state not in (S.CONFIRMING, S.VOIDING) or unit.failed is not None:
            return []
        body = checked_failure(failure, unit.agreement)
        unit.failed = failure
        return [
            Persist(rc.FailureTold(self.conversation_id, failure, now)),
            *self._fail(unit, body.reason or str(body.code), "ContractChange", now),
        ]

    def _on_hold_refused(self, message: Message, refused: c.HoldRefused, now: Instant) -> list[Effect]:
        """Take a refused CONFIRM: the resource has not accepted the agreement, so it can never claim the money."""
        unit = next(each for each in self._units.values() if each.agreement.offer.offer_id == refused.offer_id)
        said_by(message, unit.resource, Role.RESOURCE)
        if self.state is not S.CONFIRMING or unit.stage is not UnitStage.CONFIRMING:
            return []
        return self._fail(unit, refused.detail or str(refused.code), "HoldRefused", now)

    def _fail(self, unit: ConfirmedUnit, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        unit.stage = UnitStage.FAILED
        unit.retry.stop()
        effects: list[Effect] = [unit.advanced(detail)]
        if self.state is S.CONFIRMING:
            reason = f"unit {unit.agreement.request.number} failed at {unit.resource}: {detail}"
            effects += self._void(reason, stimulus, now)
        return effects

    def _settle(self, unit: ConfirmedUnit, settled: c.Settled, now: Instant) -> list[Effect]:
        """Take the resource's proof of payment; after the end it is only saved."""
        if self.state is S.RESERVING:
            raise RemoteProtocolError("settling needs an agreement")
        unit.check_proof(settled)
        agreement, payment, seal = unit.agreement, settled.payment, settled.payment_seal
        kept: list[Effect] = [SaveAgreement(agreement.agreement_id, settled.agreement, seal.text)]
        if self.state is S.ENDED or unit.stage is UnitStage.SETTLED:
            return kept if self.state is S.ENDED else []
        unit.stage, unit.transfer_id = UnitStage.SETTLED, payment.transfer_id
        unit.retry.answered(now)
        record = rc.UnitSettled(
            self.conversation_id, agreement.agreement_id, payment.transfer_id, settled.agreement, seal, now
        )
        effects: list[Effect] = [*kept, Persist(record), unit.advanced()]
        if self._all_settled:
            self._enter(S.ENDED, "Settled")
            self._conclude_posted(())
        return effects

    @property
    def _all_settled(self) -> bool:
        return all(unit.stage is UnitStage.SETTLED for unit in self._units.values())

    def _conclude_posted(self, transfers: Sequence[c.PaymentMade]) -> None:
        for payment in transfers:
            self._units[payment.agreement_id].transfer_id = payment.transfer_id
        reason = "; ".join(unit.complaint for unit in self._units.values() if unit.complaint)
        claims = tuple(unit.failed for unit in self._units.values() if unit.failed is not None)
        bought = tuple(unit.bought() for unit in self._units.values())
        self.result = ConfirmationResult(True, reason, bought, claims=claims)
