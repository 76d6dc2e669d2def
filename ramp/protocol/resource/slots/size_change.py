"""The resource's side of one amendment: from the buyer's proposal to the bank's word that it is posted.

The machine is first asked for the size that the slot has, so that one that can change nothing is refused at once. At
the instant that the amendment names it is asked for the smaller one, and only what it has then given back is paid
back: by the resource's countersignature, which the bank posts. Until then the old state holds; if it comes to nothing
the machine is asked for the old size again. Questions to a machine may overtake each other, so each bears the number of
its step, and the machine does no step after a later one.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Amendment, Signed
from ramp.model.contents import Amended, AmendmentAgreed, AmendmentPosted, AmendmentRefused, Content
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import Refusal
from ramp.model.seal import Seal
from ramp.model.sizes.amended import SlotState
from ramp.protocol.amending.asking import BANK_TOO_OLD, ResizeSlot, SlotResized
from ramp.protocol.amending.memory import (
    AmendmentDropped,
    AmendmentReceived,
    AmendmentSettled,
    CapacityTaken,
)
from ramp.protocol.effects import Effect, Persist, SaveAgreement, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.tables import SIZE_CHANGE, SizeChangeState
from ramp.protocol.timing import Pace, Retry, earliest

S = SizeChangeState

STEPS = 3
"""Steps of each amendment at the machine: the size that the slot has, the new one, the old one again."""


class SizeChange(StateMachine[SizeChangeState]):
    """One amendment.

    Args:
        signed: the amendment, signed by the buyer.
        agreement: what was bought.
        state: of the slot, which is to be changed.
        pace: of the selling agent.
        first_step: number of the first of its steps at the machine; None for the first that its number gives.

    Attributes:
        body: the amendment.
        first_step: as above.
        signed: the same, signed by the buyer.
        last_word: what the buyer is told once it has ended.
        stranded: why the machine cannot give the slot its old size again, where it cannot; the slot is lost then.
    """

    def __init__(
        self, signed: Signed, agreement: Agreement, state: SlotState, pace: Pace, first_step: int | None = None
    ) -> None:
        super().__init__(agreement.request_id, SIZE_CHANGE, S.NEW)
        assert isinstance(signed.body, Amendment)
        self.body: Amendment = signed.body
        self.first_step = STEPS * signed.body.number if first_step is None else first_step
        self.last_word: Amended | AmendmentRefused | None = None
        self.stranded = ""
        self.signed = signed
        self._state = state
        self._retry = Retry(pace)
        self._taken = False
        self._asked_before = False
        self._why: tuple[str, str] = ("", "")

    @property
    def is_binding(self) -> bool:
        """Whether no more of the slot may be used than its new size; also while the machine is asked whether it can."""
        return self.state is S.CHECKING or self._is_agreed

    @property
    def _is_agreed(self) -> bool:
        return self.state in (S.AGREED, S.TAKING, S.POSTING)

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """The amendment fits: see whether the machine can change what it has set aside."""
        self._enter(S.CHECKING, "Amendment")
        return [self._ask_machine()]

    def replay(self, record: CapacityTaken) -> None:
        """Take a later record of the journal, before `recover`."""
        self._taken = record.number == self.body.number

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart; what was asked of machine and bank before is asked again."""
        if self._taken:
            self._enter(S.POSTING, "recover")
            return [self._post(now)]
        self._enter(S.AGREED, "recover")
        self.deadline = self.body.effective_at
        return []

    def tick(self, now: Instant, *, sold: bool, old_bank: str) -> list[Effect]:
        """Take back what is given up, or ask machine or bank again.

        Args:
            now: the present.
            sold: whether the slot is sold as ever, and not being given back.
            old_bank: that the bank knows no amendments, as a sentence; empty where it does.
        """
        body = self.body
        if self.state is S.AGREED and now >= body.effective_at:
            if not sold:
                return self._restore("not_active", "the slot is being given back", "deadline", now)
            if now >= body.valid_until:
                return self._too_late(now)
            self._enter(S.TAKING, "deadline")
            self.deadline = body.valid_until
            return [self._ask_machine()]
        if self.state is S.TAKING and now >= body.valid_until:
            return self._too_late(now)
        if not self._retry.is_due(now):
            return []
        if self.state is S.POSTING and old_bank:
            return self._restore(BANK_TOO_OLD, old_bank, "deadline", now)
        if self.state is S.POSTING:
            self._retry.again(now)
            self._arm()
            return [self._to_bank()]
        self._retry.stop()
        self._arm()
        return [self._ask_machine()]

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; when it takes effect is dated, and signed by both."""
        self._retry.clock_set(by)
        self._arm()

    # -- the machine's answers -----------------------------------------------------------------------------------

    def on_resized(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has changed the slot, or not, or nobody knows; answers to earlier steps are ignored."""
        if resized.step != self._step():
            return []
        if self.state is S.CHECKING:
            return self._on_checked(resized, now)
        if resized.answer is None:
            self._ask_again_later(now)
            return []
        if self.state is S.TAKING:
            if isinstance(resized.answer, Refusal):
                return self._end(str(resized.answer.code), resized.answer.detail, "SlotResized", now)
            self._enter(S.POSTING, "SlotResized")
            return [Persist(CapacityTaken(self.body.offer_id, self.body.number, now)), self._post(now)]
        if self.state is S.RESTORING:
            if isinstance(resized.answer, Refusal):
                self.stranded = f"the slot cannot have its old size again: {resized.answer.detail}"
            return self._end(*self._why, "SlotResized", now)
        return []

    def _on_checked(self, resized: SlotResized, now: Instant) -> list[Effect]:
        if resized.answer is None:
            return self._end("machine_unavailable", resized.doubt, "SlotResized", now, recorded=False)
        if isinstance(resized.answer, Refusal):
            code = str(resized.answer.code) if resized.able else "cannot_resize"
            return self._end(code, resized.answer.detail, "SlotResized", now, recorded=False)
        self._enter(S.AGREED, "SlotResized")
        self.deadline = self.body.effective_at
        return [Persist(AmendmentReceived(self.body.offer_id, self.signed, now)), self._agreed()]

    def _ask_again_later(self, now: Instant) -> None:
        if self._asked_before:
            self._retry.again(now)
        else:
            self._retry.begin(now)
            self._asked_before = True
        self._arm()

    # -- the messages --------------------------------------------------------------------------------------------

    def on_proposed(self) -> list[Effect]:
        """The same proposal again: the same answer again, if there is one yet."""
        return [self._agreed()] if self._is_agreed else []

    def on_bank(self, content: AmendmentPosted | AmendmentRefused, seal: Seal, now: Instant) -> list[Effect]:
        """The bank's word; it is final.

        Raises:
            RemoteProtocolError: if it has posted something else.
        """
        if self.state is not S.POSTING:
            return []
        if isinstance(content, AmendmentRefused):
            return self._restore(content.code, f"the bank does not post it: {content.detail}", "AmendmentRefused", now)
        posted, right = (content.refund, content.charge), (self.body.refund, self.body.charge)
        if posted != right:
            raise RemoteProtocolError(f"refund and charge posted are {posted} minor units; right would be {right}")
        self._enter(S.ENDED, "AmendmentPosted")
        self._retry.answered(now)
        self.deadline = None
        self.last_word = Amended(self.signed, content, seal)
        settled = Persist(AmendmentSettled(self.body.offer_id, content, seal, now))
        # the document first: after a failure between the two the bank is asked again, and both are written
        return [SaveAgreement(document_name(self.body), self.signed, seal.text), settled, self.tell(self.last_word)]

    def tell(self, content: Amended | AmendmentRefused | AmendmentAgreed) -> Send:
        """Say something to the buyer."""
        performative = {Amended: Performative.INFORM, AmendmentRefused: Performative.REFUSE}.get(
            type(content), Performative.AGREE
        )
        return self._send(performative, self.body.user, content)

    # -- common --------------------------------------------------------------------------------------------------

    def _agreed(self) -> Send:
        return self.tell(AmendmentAgreed(self.body.agreement_id, self.body.number))

    def _too_late(self, now: Instant) -> list[Effect]:
        detail = f"the machine has not given it back by {iso(self.body.valid_until)}"
        return self._restore("expired", detail, "deadline", now)

    def _restore(self, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        """It comes to nothing: the machine may have changed the slot, so it is asked for the old size."""
        self._enter(S.RESTORING, stimulus)
        self._why = code, detail
        self._retry.stop()
        self._asked_before = False
        self._arm()
        return [self._ask_machine()]

    def _end(self, code: str, detail: str, stimulus: str, now: Instant, *, recorded: bool = True) -> list[Effect]:
        self._enter(S.ENDED, stimulus)
        self._retry.stop()
        self.deadline = None
        self.last_word = AmendmentRefused(self.body.agreement_id, self.body.number, code, detail)
        dropped = Persist(AmendmentDropped(self.body.offer_id, self.body.number, code, detail, now))
        return [dropped, self.tell(self.last_word)] if recorded else [self.tell(self.last_word)]

    def _step(self) -> int:
        within = {S.CHECKING: 0, S.RESTORING: 2}.get(self.state, 1)
        return self.first_step + within

    def _ask_machine(self) -> ResizeSlot:
        wanted = self.body if self.state in (S.HOLDING, S.TAKING) else self._state
        return ResizeSlot(self.body.offer_id, self._step(), wanted.cores, wanted.until)

    def _post(self, now: Instant) -> Send:
        self._retry.begin(now)
        self._arm()
        return self._to_bank()

    def _to_bank(self) -> Send:
        return self._send(Performative.REQUEST, self.body.bank, self.signed)

    def _send(self, performative: Performative, receiver: str, content: Content) -> Send:
        reference = f"{self.body.agreement_id}#{self.body.number}"
        if receiver == self.body.bank:
            message = Message(
                performative, self.body.resource, receiver, self.conversation_id, content, reply_with=reference
            )
        else:
            message = Message(
                performative, self.body.resource, receiver, self.conversation_id, content, in_reply_to=reference
            )
        return Send(message)

    def _arm(self) -> None:
        limit = self.body.valid_until if self.state is S.TAKING else None
        starts = self.body.effective_at if self.state is S.AGREED else None
        self.deadline = earliest(self._retry.due, limit, starts)


def document_name(body: Amendment) -> str:
    """What the documents of an amendment are kept under, beside those of its agreement."""
    return f"{body.agreement_id}.amendment-{body.number}"
