"""The buyer's side of one contract change, or of one order that pays for several.

The seller is asked first. It takes back a reduction, or sets an addition aside, and has the change posted. An addition
is paid by an order, which the bank sets aside before; the bank posts the order with the last of its changes, or none of
it. A cancellation goes to the seller, which countersigns it. A failure that the seller has signed goes to the bank at
once.

Only the bank's answer (posted or void) is final, whatever a seller says or fails to do. So if anything fails, the buyer
turns to the bank: it withdraws a change of size or its order, and cancels by its own signature. After a restart the
same is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed, document_name
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import order_line
from ramp.protocol.agreement_terms import OrderWord
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, SaveAgreement, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.progress import ChangeAdvanced
from ramp.protocol.timing import Pace, Retried, Retry
from ramp.protocol.transition_tables import BUYER_CHANGE, BuyerChangeState

S = BuyerChangeState
SellerWord = c.ChangeAgreed | c.ChangeRefused | c.ChangeDone
ChangeWord = SellerWord | c.ChangePosted

POSTED, VOID = "posted", "void"
"""The bank's final answers, as stimuli."""


@dataclass(slots=True)
class _Line:
    """One change.

    Attributes:
        signed: the change as it is proposed, or the failure as its seller has signed it.
        agreed: whether its seller has agreed to it.
        proved: whether its seller has proved that it is posted.
    """

    signed: Signed
    agreement: Agreement
    agreed: bool = False
    proved: bool = False

    @property
    def body(self) -> ContractChange:
        return self.signed.change


def check_proof(body: ContractChange, proof: c.ChangeDone) -> None:
    """Check both signatures of a change, and the bank's posting message to the resource.

    Raises:
        RemoteProtocolError: if one is missing or about another change.
    """
    if proof.change.body != body or proof.change.signers != (body.user, body.resource):
        raise RemoteProtocolError("the proof belongs to another change or lacks a signature")
    posted, seal = proof.posted, proof.posted_seal
    told = (seal.signer, seal.role, seal.receiver) == (body.bank, Role.BANK, body.resource)
    said = (posted.agreement_id, posted.number, posted.amount)
    if not told or said != (body.agreement_id, body.number, body.amount):
        raise RemoteProtocolError("the proof lacks the bank's statement of posting")


class BuyerChange(Retried, StateMachine[BuyerChangeState]):
    """One change, or one order that pays for several.

    Args:
        lines: the changes with their agreements, one an agreement; several only of one order at one bank.

    Attributes:
        outcomes: of each change with the bank's seal, once it has ended.
    """

    def __init__(self, lines: Sequence[tuple[Signed, Agreement]], pace: Pace) -> None:
        signed, agreement = lines[0]
        body = signed.change
        super().__init__(body.order_id or agreement.request_id, BUYER_CHANGE, S.NEW)
        self._pace = pace
        self._retry = Retry(pace)
        self.outcomes: tuple[tuple[ChangeOutcome, Seal], ...] = ()
        self._first = body
        self._lines = {each.body.agreement_id: _Line(each, bought) for each, bought in lines}
        self._why: tuple[str, str] = ("", "")

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its changes."""
        return tuple(body.key for body in self.changes)

    @property
    def agreement_ids(self) -> tuple[str, ...]:
        return tuple(self._lines)

    @property
    def order_id(self) -> str:
        return self._first.order_id

    @property
    def is_terminal(self) -> bool:
        return self._first.is_terminal

    @property
    def changes(self) -> tuple[ContractChange, ...]:
        return tuple(line.body for line in self._lines.values())

    @property
    def doubt(self) -> str:
        """Say what is in doubt, and how it will be decided."""
        body = self._first
        asked_bank = self.state is S.DECIDING
        if body.is_terminal:
            whom = "the bank" if asked_bank else body.resource
            return f"{whom} has been asked to cancel {body.agreement_id}; the bank's answer decides"
        what = body.order_id if body.grows else f"amendment {body.number} of {body.agreement_id}"
        if asked_bank:
            return f"{body.bank} has been asked to void {what}; its answer decides"
        if body.grows:
            return f"{what} pays for the addition; all slots stay unchanged until {body.bank} has posted it"
        return f"{what} awaits {body.resource}; the slot stays unchanged until {body.bank} has posted it"

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Ask the sellers, or the bank after a failure; for the first time or after a restart."""
        if self._first.is_failure:
            return self.decide(now)
        self._enter(S.ASKING, "start")
        return self._ask(self._pace.timing.cancellation_limit, now)

    def decide(self, now: Instant) -> list[Effect]:
        """Ask only the bank: after a failure, or for an order that had ended in part before a restart."""
        self._enter(S.DECIDING, "recover")
        return self._ask(None, now)

    def on_timer(self, now: Instant) -> list[Effect]:
        """Send again, or turn to the bank if an answer takes too long."""
        body = self._first
        if not self._retry.is_over(now):
            return self._ask_again(now)
        if not body.grows:
            detail = f"{body.resource} has not posted the amendment in time"
            return self._turn_to_bank("no_answer", detail, "deadline", now)
        silent = [body.bank]
        if self.state is S.ASKING:
            silent = [line.body.resource for line in self._lines.values() if not line.agreed]
        elif self.state is S.AGREED:
            silent = [line.body.resource for line in self._lines.values() if not line.proved]
        who = ", ".join(sorted(set(silent)))
        return self._turn_to_bank("no_answer", f"{who} did not respond in time", "deadline", now)

    # -- messages ------------------------------------------------------------------------------------------------

    def on_message(
        self, message: Message, agreement_id: str, content: ChangeWord | c.ChangePriced, now: Instant
    ) -> list[Effect]:
        """Take an answer of a seller or the bank about one change; late prices are ignored.

        Raises:
            RemoteProtocolError: if its sender did not seal it, or the proof is invalid.
        """
        body = self._first
        by_bank = isinstance(content, c.ChangeRefused) and message.sender != body.resource and not body.grows
        if isinstance(content, c.ChangePosted) or by_bank:
            assert isinstance(content, c.ChangePosted | c.ChangeRefused)
            return [] if body.grows else self._on_bank(message, content, now)  # an order has the bank's answer
        return [] if isinstance(content, c.ChangePriced) else self._on_seller(message, agreement_id, content, now)

    def _on_seller(self, message: Message, agreement_id: str, content: SellerWord, now: Instant) -> list[Effect]:
        line = self._lines[agreement_id]
        said_by(message, line.body.resource, Role.RESOURCE)
        if isinstance(content, c.ChangeDone):
            check_proof(line.body, content)
            return self._on_proved(line, content, now)
        if isinstance(content, c.ChangeRefused):
            if self.state is S.DECIDING:
                return []
            return self._turn_to_bank(content.code, content.detail, "ChangeRefused", now)
        if self.state is not S.ASKING or line.agreed or line.body.is_terminal:
            return []
        return self._on_agreed(line, now)

    def _on_bank(self, message: Message, content: c.ChangePosted | c.ChangeRefused, now: Instant) -> list[Effect]:
        """Take the bank's answer about a change that no order pays for."""
        body = self._first
        seal = said_by(message, body.bank, Role.BANK)
        is_posted = isinstance(content, c.ChangePosted)
        if self.state is not S.DECIDING and not (is_posted and body.is_terminal):
            return []
        if isinstance(content, c.ChangeRefused):
            return self._void(content.code, content.detail, seal, now)
        self._end(POSTED, seal, now, refund=content.refund)
        # ask the seller again for the copy with both signatures
        return [] if body.is_terminal else [self._to_seller(line, line.signed) for line in self._lines.values()]

    def on_order(self, message: Message, content: OrderWord, now: Instant) -> list[Effect]:
        """Take the bank's answer about the order.

        Raises:
            RemoteProtocolError: if the bank did not seal it, or it is about another order.
        """
        seal = said_by(message, self._first.bank, Role.BANK)
        if isinstance(content, c.FundsReserved):
            return self._on_reserved(content, now)
        if isinstance(content, c.OrderPosted):
            keys = {payment.agreement_id for payment in content.transfers}
            if not keys >= {line.body.key for line in self._lines.values()}:  # other lines may have ended
                raise RemoteProtocolError("the bank has posted another order")
            missing = [line for line in self._lines.values() if not line.proved]
            self._end(POSTED, seal, now)
            # ask the sellers again for the copies with both signatures
            return [self._to_seller(line, _agreed(line)) for line in missing]
        if isinstance(content, c.OrderRefused) and self.state not in (S.RESERVING, S.DECIDING):
            return []  # a late answer to an earlier question
        self._void(content.code, content.detail, seal, now)
        return [self._to_seller(line, _withdrawal(line.body)) for line in self._lines.values()]

    def on_not_understood(self, sender: str, now: Instant) -> list[Effect]:
        """Turn to the bank if the seller or bank asked does not understand; then neither acts on it."""
        asked = {S.ASKING: {line.body.resource for line in self._lines.values()}, S.RESERVING: {self._first.bank}}
        if sender not in asked.get(self.state, ()):
            return []
        detail = f"{sender} does not understand the amendment"
        return self._turn_to_bank("not_understood", detail, "NotUnderstood", now)

    def _on_agreed(self, line: _Line, now: Instant) -> list[Effect]:
        line.agreed = True
        effects: list[Effect] = [Report(ChangeAdvanced(line.body))]
        if not all(each.agreed for each in self._lines.values()):
            return effects
        self._retry.answered(now)
        if line.body.grows:
            self._enter(S.RESERVING, "ChangeAgreed")
            return effects + self._ask(self._pace.timing.cancellation_limit, now)
        self._enter(S.AGREED, "ChangeAgreed")
        self._retry.limit = line.body.valid_until + self._answer_time()
        return effects

    def _on_reserved(self, vote: c.FundsReserved, now: Instant) -> list[Effect]:
        if self.state is not S.RESERVING:
            return []
        body = self._first
        if (vote.user, vote.lines, vote.valid_until) != (body.user, self._order_lines(), body.valid_until):
            raise RemoteProtocolError("the bank has reserved another order")
        self._retry.answered(now)
        self._enter(S.AGREED, "FundsReserved")
        return self._ask(max(body.valid_until - now, 0) + self._answer_time(), now)

    def _answer_time(self) -> int:
        """Return how long an answer may take after the change has expired."""
        return self._pace.patience(self._pace.timing.cancellation_limit)

    def _on_proved(self, line: _Line, proof: c.ChangeDone, now: Instant) -> list[Effect]:
        body = line.body
        line.proved = True
        name = document_name(body.agreement_id, body.number)
        effects: list[Effect] = [SaveAgreement(name, proof.change, proof.posted_seal.text)]
        if all(each.proved for each in self._lines.values()):
            self._end(POSTED, proof.posted_seal, now, refund=proof.posted.refund)
        return effects

    # -- the end -------------------------------------------------------------------------------------------------

    def _turn_to_bank(self, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.DECIDING, stimulus)
        if not self._first.is_terminal:
            self._why = code, detail
        return self._ask(None, now)

    def _void(self, code: str, detail: str, seal: Seal, now: Instant) -> list[Effect]:
        if not self._why[0]:
            self._why = code, detail
        self._end(VOID, seal, now)
        return []

    def _end(self, stimulus: str, seal: Seal, now: Instant, refund: int = 0) -> None:
        self._enter(S.ENDED, stimulus)
        self._retry.answered(now)
        self._retry.stop()
        done = stimulus == POSTED
        self.outcomes = tuple((self._outcome(body, refund, done=done), seal) for body in self.changes)

    def _outcome(self, body: ContractChange, refund: int, *, done: bool) -> ChangeOutcome:
        code, detail = self._why
        if done:
            code, detail = ("", "") if body.code is None else (body.code, body.reason)
        charge = body.charge if done else 0
        size = (body.cores, body.until, body.effective_at)
        what = (body.agreement_id, body.number, done, *size)
        return ChangeOutcome(*what, refund, code, detail, charge, ends=body.is_terminal)

    # -- asking again --------------------------------------------------------------------------------------------

    def _ask(self, limit: Duration | None, now: Instant) -> list[Effect]:
        """Ask for the first time and wait at least this long for an answer; None waits without limit."""
        self._retry.begin(now, None if limit is None else now + self._pace.patience(limit))
        return self._say()

    def _ask_again(self, now: Instant) -> list[Effect]:
        if not self._retry.is_due(now):
            return []
        self._retry.again(now)
        return self._say()

    # -- what is said --------------------------------------------------------------------------------------------

    def _say(self) -> list[Effect]:
        lines = self._lines.values()
        if self.state is S.ASKING:
            return [self._to_seller(line, line.signed) for line in lines if not line.agreed]
        if self.state is S.AGREED:
            return [self._to_seller(line, _agreed(line)) for line in lines if not line.proved]
        if self.state is S.RESERVING:
            return [self._to_bank(c.PaymentOrder(self.order_id, self._order_lines(), self._first.valid_until))]
        return [self._to_bank(self._decision())]

    def _decision(self) -> c.Content:
        """Return the question on which the bank decides."""
        body = self._first
        if body.is_terminal:
            return self._lines[body.agreement_id].signed
        if not body.grows:
            return _withdrawal(body)
        reason = self._why[1] or "the buyer does not know how the amendment ended"
        return c.OrderWithdrawal(body.order_id, body.valid_until, reason)

    def _order_lines(self) -> tuple[c.OrderLine, ...]:
        return tuple(order_line(body) for body in self.changes)

    def _to_seller(self, line: _Line, content: Signed | c.ChangeAgreed | c.ChangeWithdrawal) -> Send:
        body, about = line.body, line.agreement.request_id
        performative = Performative.CANCEL if body.is_terminal else Performative.REQUEST
        if isinstance(content, c.ChangeAgreed):
            performative = Performative.CONFIRM
        return Send(Message(performative, body.user, body.resource, about, content, reply_with=body.key))

    def _to_bank(self, content: c.Content) -> Send:
        body, about = self._first, self.conversation_id
        return Send(Message(Performative.REQUEST, body.user, body.bank, about, content, reply_with=body.key))


def _agreed(line: _Line) -> c.ChangeAgreed:
    return c.ChangeAgreed(line.body.agreement_id, line.body.number)


def _withdrawal(body: ContractChange) -> c.ChangeWithdrawal:
    return c.ChangeWithdrawal(body.agreement_id, body.number)
