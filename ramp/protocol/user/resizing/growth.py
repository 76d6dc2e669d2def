"""The user's side of adding to bought slots by one order: proposed to the sellers, and ended by the bank's word.

Each seller sets aside what is added; then the bank sets the whole charge aside; then each seller countersigns its
amendment and brings it to the bank, which posts all of them with the last one, or none. Whatever goes wrong, the order
is withdrawn at the bank, whose answer is final: posted after all, or never. So nothing rests on whether a seller says
no, says nothing, or fails. The same order again, after a restart, is the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Signed
from ramp.model.contents import (
    Amended,
    AmendmentAgreed,
    AmendmentFunded,
    AmendmentRefused,
    AmendmentWithdrawal,
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
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, SaveAgreement, Send
from ramp.protocol.machine import PatientMachine
from ramp.protocol.progress import AmendmentAdvanced
from ramp.protocol.timing import Pace
from ramp.protocol.transition_tables import ADDITION, AdditionState

S = AdditionState
OrderWord = FundsReserved | OrderRefused | OrderPosted | OrderVoided
SellerWord = AmendmentAgreed | AmendmentRefused | Amended


@dataclass(slots=True)
class _Line:
    """One amendment of the order.

    Attributes:
        body: what is proposed.
        agreement: what was bought.
        agreed: its seller has set aside what is added.
        proved: its seller has proved that it is posted.
    """

    body: Amendment
    agreement: Agreement
    agreed: bool = False
    proved: bool = False


def check_proof(body: Amendment, proof: Amended) -> None:
    """Check that both have signed this amendment, and that the bank has told the resource that it is posted.

    Raises:
        RemoteProtocolError: if not.
    """
    if proof.amendment.body != body or proof.amendment.signers != (body.user, body.resource):
        raise RemoteProtocolError("the proof belongs to another amendment or lacks a signature")
    posted, seal = proof.posted, proof.posted_seal
    told = (seal.signer, seal.role, seal.receiver) == (body.bank, Role.BANK, body.resource)
    said = (posted.agreement_id, posted.number, posted.refund, posted.charge)
    if not told or said != (body.agreement_id, body.number, body.refund, body.charge):
        raise RemoteProtocolError("the proof lacks the bank's statement of posting")


class Growth(PatientMachine[AdditionState]):
    """One order that adds to slots.

    Args:
        lines: the amendments with their agreements, all of one order, one an agreement, of one bank.
        pace: of the user.

    Attributes:
        outcomes: how it ended, for each line, once it has, with the bank's seal on it.
    """

    def __init__(self, lines: Sequence[tuple[Amendment, Agreement]], pace: Pace) -> None:
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
    def amendments(self) -> tuple[Amendment, ...]:
        """What is proposed, one an agreement."""
        return tuple(line.body for line in self._lines.values())

    @property
    def lines(self) -> tuple[tuple[Amendment, Agreement], ...]:
        """The same, each with its agreement."""
        return tuple((line.body, line.agreement) for line in self._lines.values())

    @property
    def doubt(self) -> str:
        """What is not known yet and how it will end, or the empty string."""
        if self.state is S.ENDED:
            return ""
        if self.state is S.WITHDRAWING:
            return f"{self._bank} has been asked to void {self.order_id}; its answer decides"
        return f"{self.order_id} pays for the addition; all slots stay unchanged until {self._bank} has posted it"

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Propose it, for the first time or after a restart."""
        self._enter(S.ASKING, "start")
        return self._ask(self._pace.timing.cancellation_limit, now)

    def conclude(self, now: Instant) -> list[Effect]:
        """After a restart in the middle of its end: have the bank say once more how it ended."""
        self._enter(S.WITHDRAWING, "recover")
        return self._ask(None, now)

    def tick(self, now: Instant) -> list[Effect]:
        """Say it again; give up what takes too long."""
        if self._is_out_of_patience(now):
            silent = [each.body.resource for each in self._lines.values() if not each.agreed]
            who = ", ".join(sorted(set(silent))) if self.state is S.ASKING else self._bank
            if self.state is S.FUNDED:
                who = ", ".join(sorted({each.body.resource for each in self._lines.values() if not each.proved}))
            return self._withdraw("no_answer", f"{who} did not respond in time", "deadline", now)
        return self._ask_again(now)

    # -- messages ------------------------------------------------------------------------------------------------

    def on_seller(self, message: Message, agreement_id: str, content: SellerWord, now: Instant) -> list[Effect]:
        """Take a seller's word on one of the amendments; after the end everything is ignored.

        Raises:
            RemoteProtocolError: if it is not its sender's own word, or proves nothing.
        """
        if self.state is S.ENDED:
            return []
        line = self._lines[agreement_id]
        said_by(message, line.body.resource, Role.RESOURCE)
        if isinstance(content, Amended):
            check_proof(line.body, content)
            return self._proved(line, content, now)
        if isinstance(content, AmendmentRefused):
            if self.state is S.WITHDRAWING:
                return []
            return self._withdraw(content.code, content.detail, "AmendmentRefused", now)
        if self.state is not S.ASKING or line.agreed:
            return []
        line.agreed = True
        effects: list[Effect] = [Report(AmendmentAdvanced(line.body))]
        if all(each.agreed for each in self._lines.values()):
            self._retry.answered(now)
            self._enter(S.RESERVING, "AmendmentAgreed")
            effects += self._ask(self._pace.timing.cancellation_limit, now)
        return effects

    def on_bank(self, message: Message, content: OrderWord, now: Instant) -> list[Effect]:
        """Take the bank's word on the order; after the end everything is ignored.

        Raises:
            RemoteProtocolError: if it is not the bank's own word, or of another order.
        """
        if self.state is S.ENDED:
            return []
        seal = said_by(message, self._bank, Role.BANK)
        if isinstance(content, FundsReserved):
            return self._on_reserved(content, now)
        if isinstance(content, OrderPosted):
            keys = {payment.agreement_id for payment in content.transfers}
            if not keys >= {line.body.key for line in self._lines.values()}:  # others of it may have ended already
                raise RemoteProtocolError("the bank has posted another order")
            missing = [line for line in self._lines.values() if not line.proved]
            self._end("OrderPosted", seal, now, done=True)
            # the copy with both signatures is the seller's to give: it gives the same answer again
            return [self._to_seller(line, Performative.CONFIRM, self._funded(line)) for line in missing]
        if isinstance(content, OrderRefused) and self.state not in (S.RESERVING, S.WITHDRAWING):
            return []  # late: of a question that has been answered otherwise since
        if not self._why[0]:
            self._why = content.code, content.detail
        self._end(type(content).__name__, seal, now, done=False)
        return [self._to_seller(line, Performative.REQUEST, self._given_up(line)) for line in self._lines.values()]

    def on_not_understood(self, sender: str, now: Instant) -> list[Effect]:
        """Seller or bank know nothing of the kind: what they do not know they do not do."""
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
        # so long as it can be posted, and then as long as an answer may take
        answers = self._pace.patience(self._pace.timing.cancellation_limit)
        return self._ask(max(self.valid_until - now, 0) + answers, now)

    def _proved(self, line: _Line, proof: Amended, now: Instant) -> list[Effect]:
        body = line.body
        line.proved = True
        effects: list[Effect] = [
            SaveAgreement(f"{body.agreement_id}.amendment-{body.number}", proof.amendment, proof.posted_seal.text)
        ]
        if all(each.proved for each in self._lines.values()):
            self._end("Amended", proof.posted_seal, now, done=True)
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
        """What is said in this state, to whom it may still be news."""
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

    def _funded(self, line: _Line) -> AmendmentFunded:
        return AmendmentFunded(line.body.agreement_id, line.body.number, self.order_id)

    def _given_up(self, line: _Line) -> AmendmentWithdrawal:
        return AmendmentWithdrawal(line.body.agreement_id, line.body.number)

    def _to_seller(self, line: _Line, performative: Performative, content: Content) -> Send:
        about, key = line.agreement.request_id, line.body.key
        return Send(Message(performative, self._user, line.body.resource, about, content, reply_with=key))

    def _to_bank(self, content: PaymentOrder | OrderWithdrawal) -> Send:
        reference = next(iter(self._lines.values())).body.key
        return Send(Message(Performative.REQUEST, self._user, self._bank, self.order_id, content, reply_with=reference))


def _came_to(body: Amendment, *, done: bool, code: str, detail: str) -> AmendmentOutcome:
    charge = body.charge if done else 0
    return AmendmentOutcome(
        body.agreement_id, body.number, done, body.cores, body.until, body.effective_at, 0, code, detail, charge
    )
