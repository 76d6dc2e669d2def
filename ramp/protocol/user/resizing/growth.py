"""The user's side of one order that enlarges bought slots.

Each seller reserves the addition, then the bank reserves the whole charge. Each seller countersigns its amendment and
sends it to the bank, which posts all with the last one, or none. If anything fails, the user withdraws the order, and
the bank's answer (posted or void) is final, whatever a seller says or fails to do. After a restart the same order is
sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import (
    ChangeAgreed,
    ChangeDone,
    ChangeRefused,
    ChangeWithdrawal,
    Content,
    FundsReserved,
    OrderLine,
    OrderPosted,
    OrderRefused,
    OrderVoided,
    OrderWithdrawal,
    PaymentOrder,
)
from ramp.model.instant import Instant
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import order_line
from ramp.protocol.amending.asking import AmendmentOutcome
from ramp.protocol.amending.memory import document_name
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, SaveAgreement, Send
from ramp.protocol.machine import PatientMachine
from ramp.protocol.progress import AmendmentAdvanced
from ramp.protocol.timing import Pace
from ramp.protocol.transition_tables import ADDITION, AdditionState

S = AdditionState
OrderWord = FundsReserved | OrderRefused | OrderPosted | OrderVoided
SellerWord = ChangeAgreed | ChangeRefused | ChangeDone


@dataclass(slots=True)
class _Line:
    """One amendment of the order.

    Attributes:
        agreed: whether its seller has reserved the addition.
        proved: whether its seller has proved that it is posted.
    """

    body: ContractChange
    agreement: Agreement
    agreed: bool = False
    proved: bool = False


def check_proof(body: ContractChange, proof: ChangeDone) -> None:
    """Check both signatures of an amendment, and the bank's posting message to the resource.

    Raises:
        RemoteProtocolError: if one is missing or about another amendment.
    """
    if proof.change.body != body or proof.change.signers != (body.user, body.resource):
        raise RemoteProtocolError("the proof belongs to another amendment or lacks a signature")
    posted, seal = proof.posted, proof.posted_seal
    told = (seal.signer, seal.role, seal.receiver) == (body.bank, Role.BANK, body.resource)
    said = (posted.agreement_id, posted.number, posted.amount)
    if not told or said != (body.agreement_id, body.number, body.amount):
        raise RemoteProtocolError("the proof lacks the bank's statement of posting")


class Growth(PatientMachine[AdditionState]):
    """One order that enlarges slots.

    Args:
        lines: amendments with their agreements, one an agreement, of one order and one bank.
        pace: of the user.

    Attributes:
        outcomes: outcome of each line with the bank's seal, once the order has ended.
    """

    def __init__(self, lines: Sequence[tuple[ContractChange, Agreement]], pace: Pace) -> None:
        first = lines[0][0]
        super().__init__(first.order_id, ADDITION, S.NEW, pace)
        self.order_id = first.order_id
        self.valid_until = first.valid_until
        self.outcomes: tuple[tuple[AmendmentOutcome, Seal], ...] = ()
        self._bank = first.bank
        self._user = first.user
        self._lines = {body.agreement_id: _Line(body, agreement) for body, agreement in lines}
        self._why: tuple[str, str] = ("", "")

    @property
    def amendments(self) -> tuple[ContractChange, ...]:
        return tuple(line.body for line in self._lines.values())

    @property
    def lines(self) -> tuple[tuple[ContractChange, Agreement], ...]:
        return tuple((line.body, line.agreement) for line in self._lines.values())

    @property
    def doubt(self) -> str:
        if self.state is S.ENDED:
            return ""
        if self.state is S.WITHDRAWING:
            return f"{self._bank} has been asked to void {self.order_id}; its answer decides"
        return f"{self.order_id} pays for the addition; all slots stay unchanged until {self._bank} has posted it"

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Propose the amendments, for the first time or after a restart."""
        self._enter(S.ASKING, "start")
        return self._ask(self._pace.timing.cancellation_limit, now)

    def conclude(self, now: Instant) -> list[Effect]:
        """After a restart during the end, ask the bank again for the outcome."""
        self._enter(S.WITHDRAWING, "recover")
        return self._ask(None, now)

    def tick(self, now: Instant) -> list[Effect]:
        if self._is_out_of_patience(now):
            silent = [each.body.resource for each in self._lines.values() if not each.agreed]
            who = ", ".join(sorted(set(silent))) if self.state is S.ASKING else self._bank
            if self.state is S.FUNDED:
                who = ", ".join(sorted({each.body.resource for each in self._lines.values() if not each.proved}))
            return self._withdraw("no_answer", f"{who} did not respond in time", "deadline", now)
        return self._ask_again(now)

    # -- messages ------------------------------------------------------------------------------------------------

    def on_seller(self, message: Message, agreement_id: str, content: SellerWord, now: Instant) -> list[Effect]:
        """Take a seller's answer about one amendment; ignored after the end.

        Raises:
            RemoteProtocolError: if the seller did not seal it, or the proof is invalid.
        """
        if self.state is S.ENDED:
            return []
        line = self._lines[agreement_id]
        said_by(message, line.body.resource, Role.RESOURCE)
        if isinstance(content, ChangeDone):
            check_proof(line.body, content)
            return self._proved(line, content, now)
        if isinstance(content, ChangeRefused):
            if self.state is S.WITHDRAWING:
                return []
            return self._withdraw(content.code, content.detail, "ChangeRefused", now)
        if self.state is not S.ASKING or line.agreed:
            return []
        line.agreed = True
        effects: list[Effect] = [Report(AmendmentAdvanced(line.body))]
        if all(each.agreed for each in self._lines.values()):
            self._retry.answered(now)
            self._enter(S.RESERVING, "ChangeAgreed")
            effects += self._ask(self._pace.timing.cancellation_limit, now)
        return effects

    def on_bank(self, message: Message, content: OrderWord, now: Instant) -> list[Effect]:
        """Take the bank's answer about the order; ignored after the end.

        Raises:
            RemoteProtocolError: if the bank did not seal it, or it is about another order.
        """
        if self.state is S.ENDED:
            return []
        seal = said_by(message, self._bank, Role.BANK)
        if isinstance(content, FundsReserved):
            return self._on_reserved(content, now)
        if isinstance(content, OrderPosted):
            keys = {payment.agreement_id for payment in content.transfers}
            if not keys >= {line.body.key for line in self._lines.values()}:  # other lines may have ended
                raise RemoteProtocolError("the bank has posted another order")
            missing = [line for line in self._lines.values() if not line.proved]
            self._end("OrderPosted", seal, now, done=True)
            # ask the sellers again for the copies with both signatures
            return [self._to_seller(line, Performative.CONFIRM, self._funded(line)) for line in missing]
        if isinstance(content, OrderRefused) and self.state not in (S.RESERVING, S.WITHDRAWING):
            return []  # a late answer to an earlier question
        if not self._why[0]:
            self._why = content.code, content.detail
        self._end(type(content).__name__, seal, now, done=False)
        return [self._to_seller(line, Performative.REQUEST, self._given_up(line)) for line in self._lines.values()]

    def on_not_understood(self, sender: str, now: Instant) -> list[Effect]:
        """Withdraw if the seller or bank asked does not understand; then neither acts on it."""
        asked = {S.ASKING: {line.body.resource for line in self._lines.values()}, S.RESERVING: {self._bank}}
        if sender not in asked.get(self.state, ()):
            return []
        detail = f"{sender} does not understand the amendment"
        return self._withdraw("not_understood", detail, "NotUnderstood", now)

    def _on_reserved(self, vote: FundsReserved, now: Instant) -> list[Effect]:
        if self.state is not S.RESERVING:
            return []
        if (vote.user, vote.lines, vote.valid_until) != (self._user, self._order_lines(), self.valid_until):
            raise RemoteProtocolError("the bank has reserved another order")
        self._retry.answered(now)
        self._enter(S.FUNDED, "FundsReserved")
        # until the order expires, plus the time for an answer
        answers = self._pace.patience(self._pace.timing.cancellation_limit)
        return self._ask(max(self.valid_until - now, 0) + answers, now)

    def _proved(self, line: _Line, proof: ChangeDone, now: Instant) -> list[Effect]:
        body = line.body
        line.proved = True
        effects: list[Effect] = [
            SaveAgreement(document_name(body.agreement_id, body.number), proof.change, proof.posted_seal.text)
        ]
        if all(each.proved for each in self._lines.values()):
            self._end("ChangeDone", proof.posted_seal, now, done=True)
        return effects

    # -- common --------------------------------------------------------------------------------------------------

    def _withdraw(self, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.WITHDRAWING, stimulus)
        self._why = code, detail
        return self._ask(None, now)

    def _end(self, stimulus: str, seal: Seal, now: Instant, *, done: bool) -> None:
        self._enter(S.ENDED, stimulus)
        self._is_answered(now)
        code, detail = ("", "") if done else self._why
        self.outcomes = tuple((_came_to(body, done=done, code=code, detail=detail), seal) for body in self.amendments)

    def _say(self) -> list[Effect]:
        lines = self._lines.values()
        if self.state is S.ASKING:
            return [self._to_seller(line, Performative.REQUEST, Signed(line.body)) for line in lines if not line.agreed]
        if self.state is S.FUNDED:
            return [
                self._to_seller(line, Performative.CONFIRM, self._funded(line)) for line in lines if not line.proved
            ]
        if self.state is S.RESERVING:
            return [self._to_bank(PaymentOrder(self.order_id, self._order_lines(), self.valid_until))]
        reason = self._why[1] or "the buyer does not know how the amendment ended"
        return [self._to_bank(OrderWithdrawal(self.order_id, self.valid_until, reason))]

    def _order_lines(self) -> tuple[OrderLine, ...]:
        return tuple(order_line(body) for body in self.amendments)

    def _funded(self, line: _Line) -> ChangeAgreed:
        return ChangeAgreed(line.body.agreement_id, line.body.number)

    def _given_up(self, line: _Line) -> ChangeWithdrawal:
        return ChangeWithdrawal(line.body.agreement_id, line.body.number)

    def _to_seller(self, line: _Line, performative: Performative, content: Content) -> Send:
        about, key = line.agreement.request_id, line.body.key
        return Send(Message(performative, self._user, line.body.resource, about, content, reply_with=key))

    def _to_bank(self, content: PaymentOrder | OrderWithdrawal) -> Send:
        reference = next(iter(self._lines.values())).body.key
        return Send(Message(Performative.REQUEST, self._user, self._bank, self.order_id, content, reply_with=reference))


def _came_to(body: ContractChange, *, done: bool, code: str, detail: str) -> AmendmentOutcome:
    charge = body.charge if done else 0
    return AmendmentOutcome(
        body.agreement_id, body.number, done, body.cores, body.until, body.effective_at, 0, code, detail, charge
    )
