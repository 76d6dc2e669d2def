"""The resource's side of one change of a sold slot's size: what is asked of the machine, and then of the bank.

The machine is asked for another size, and the bank to post what that costs or gives back. Until it has, the old state
holds; if it comes to nothing the machine is asked for the old size again. Questions to a machine may overtake each
other, so each bears the number of its step, and the machine does no step after a later one.

As it is written here something is given up: the machine is first asked for the size that the slot has, so that one
that can change nothing is known at once, and at the instant agreed on for the smaller one. Only what it has given back
then is paid back: by the resource's countersignature, which the bank posts. What is added goes another way
(`growth.py`).
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
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.amending.memory import (
    AmendmentDropped,
    AmendmentReceived,
    AmendmentSettled,
    CapacityTaken,
)
from ramp.protocol.effects import Effect, Persist, SaveAgreement, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.timing import Pace, Retry, earliest
from ramp.protocol.transition_tables import SIZE_CHANGE, SizeChangeState

S = SizeChangeState

STEPS = 3
"""Steps of each change at the machine: the size that the slot has, the new one, the old one again."""


class SizeChange(StateMachine[SizeChangeState]):
    """One amendment.

    Args:
        signed: the amendment, signed by the buyer.
        agreement: what was bought.
        state: of the slot, which is to be changed.
        pace: of the selling agent.

    Attributes:
        signed: as above.
        body: the amendment.
        on_record: whether something of it is durable; what is not comes to nothing with a restart.
        last_word: what the buyer is told once it has ended.
        stranded: why the machine cannot give the slot its old size again, where it cannot; the slot is lost then.
    """

    def __init__(self, signed: Signed, agreement: Agreement, state: SlotState, pace: Pace) -> None:
        super().__init__(agreement.request_id, SIZE_CHANGE, S.NEW)
        body = signed.body
        assert isinstance(body, Amendment)
        self.signed = signed
        self.body = body
        self.on_record = False
        self.last_word: Amended | AmendmentRefused | None = None
        self.stranded = ""
        self._state = state
        self._retry = Retry(pace)
        self._taken = False
        self._asked_before = False
        self._in_doubt = False
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
        self._in_doubt = True
        if self._taken:
            self._enter(S.POSTING, "recover")
            return [self._ask_bank(now)]
        self._enter(S.AGREED, "recover")
        self._arm()
        return []

    def on_proposed(self) -> list[Effect]:
        """The same proposal again: the same answer again, if there is one yet."""
        return [self._agreed()] if self._is_agreed else []

    def on_resized(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has changed the slot, or not, or nobody knows; answers to earlier steps are ignored."""
        if resized.step != self._step():
            return []
        if self.state is S.CHECKING:
            return self._on_checked(resized, now)
        if resized.answer is None:
            self._in_doubt = True
            self._ask_again_later(now)
            return []
        if self.state is S.RESTORING:
            if isinstance(resized.answer, Refusal):
                self._not_restored(resized.answer)
            return self._end(*self._why, "SlotResized", now)
        return self._on_new_size(resized, now)

    def on_bank(self, content: AmendmentPosted | AmendmentRefused, seal: Seal, now: Instant) -> list[Effect]:
        """The bank's word; it is final.

        Raises:
            RemoteProtocolError: if it has posted something else.
        """
        if self.state is not S.POSTING:
            return []
        if isinstance(content, AmendmentRefused):
            return self._restore(content.code, f"the bank refuses the amendment: {content.detail}", "AmendmentRefused")
        posted, right = (content.refund, content.charge), (self.body.refund, self.body.charge)
        if posted != right:
            raise RemoteProtocolError(f"posted refund and charge in minor units: got {posted}, expected {right}")
        self._enter(S.ENDED, "AmendmentPosted")
        self._retry.answered(now)
        self.deadline = None
        self.last_word = Amended(self.signed, content, seal)
        settled = Persist(AmendmentSettled(self.body.offer_id, content, seal, now))
        # the document first: after a failure between the two the bank is asked again, and both are written
        return [SaveAgreement(document_name(self.body), self.signed, seal.text), settled, self.tell(self.last_word)]

    def tick(self, now: Instant, *, sold: bool) -> list[Effect]:
        """Take back what is given up, or ask machine or bank again.

        Args:
            now: the present.
            sold: whether the slot is sold as ever, and not being given back.
        """
        body = self.body
        if self.state is S.AGREED and now >= body.effective_at:
            if not sold:
                return self._restore("not_active", "the slot is being released", "deadline")
            if now >= body.valid_until:
                return self._too_late()
            self._enter(S.TAKING, "deadline")
            self._arm()
            return [self._ask_machine()]
        if self.state is S.TAKING and now >= body.valid_until:
            return self._too_late()
        return self._ask_again(now)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; when it takes effect is dated, and signed."""
        self._retry.clock_set(by)
        self._arm()

    def tell(self, content: Amended | AmendmentRefused | AmendmentAgreed) -> Send:
        """Say something to the buyer."""
        performative = {Amended: Performative.INFORM, AmendmentRefused: Performative.REFUSE}.get(
            type(content), Performative.AGREE
        )
        return self._send(performative, self.body.user, content)

    # -- the machine ---------------------------------------------------------------------------------------------

    def _on_checked(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """Nothing is on record yet, so that what nobody knows is as good as a refusal."""
        if resized.answer is None:
            return self._end("machine_unavailable", resized.doubt, "SlotResized", now)
        if isinstance(resized.answer, Refusal):
            code = refusal_code(resized.answer, able=resized.able)
            return self._end(code, resized.answer.detail, "SlotResized", now)
        self._enter(S.AGREED, "SlotResized")
        self._arm()
        return [self._received(now), self._agreed()]

    def _on_new_size(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has answered what it was asked for the new size."""
        if self.state is not S.TAKING:
            return []
        if isinstance(resized.answer, Refusal):
            return self._not_done(resized.answer, resized.answer.code, now)
        self._enter(S.POSTING, "SlotResized")
        return [Persist(self._is_taken(now)), self._ask_bank(now)]

    def _not_done(self, refusal: Refusal, code: str, now: Instant) -> list[Effect]:
        """The machine refuses the new size.

        Where it was asked before and nobody knows, that may be done yet: then it is asked for the old size, for no step
        is done after a later one.
        """
        if self._in_doubt:
            return self._restore(str(code), refusal.detail, "SlotResized")
        return self._end(str(code), refusal.detail, "SlotResized", now)

    def _not_restored(self, refusal: Refusal) -> None:
        self.stranded = f"the slot cannot return to its old size: {refusal.detail}"

    def _ask_machine(self) -> ResizeSlot:
        wanted = self.body if self.state in (S.HOLDING, S.TAKING) else self._state
        return ResizeSlot(self.body.offer_id, self._step(), wanted.cores, wanted.until)

    def _step(self) -> int:
        """Every proposal about a slot has a higher number than those before, so its steps are later ones."""
        return STEPS * self.body.number + {S.CHECKING: 0, S.RESTORING: 2}.get(self.state, 1)

    # -- asking again --------------------------------------------------------------------------------------------

    def _ask_bank(self, now: Instant) -> Send:
        self._retry.begin(now)
        self._arm()
        return self._to_bank()

    def _ask_again(self, now: Instant) -> list[Effect]:
        """Whoever has not answered is asked again, when it is time."""
        if not self._retry.is_due(now):
            return []
        if self.state is S.POSTING:
            self._retry.again(now)
            self._arm()
            return [self._to_bank()]
        self._retry.stop()
        self._arm()
        return [self._ask_machine()]

    def _ask_again_later(self, now: Instant) -> None:
        """Nobody knows what the machine has done."""
        if self._asked_before:
            self._retry.again(now)
        else:
            self._retry.begin(now)
            self._asked_before = True
        self._arm()

    def _arm(self) -> None:
        self.deadline = earliest(self._retry.due, self._limit())

    def _limit(self) -> Instant | None:
        """Until when the present state lasts at the most."""
        return {S.AGREED: self.body.effective_at, S.TAKING: self.body.valid_until}.get(self.state)

    # -- the end -------------------------------------------------------------------------------------------------

    def _too_late(self) -> list[Effect]:
        detail = f"the machine has not released the cores by {iso(self.body.valid_until)}"
        return self._restore("expired", detail, "deadline")

    def _restore(self, code: str, detail: str, stimulus: str) -> list[Effect]:
        """It comes to nothing: the machine may have changed the slot, so it is asked for the old size."""
        self._enter(S.RESTORING, stimulus)
        self._why = code, detail
        self._retry.stop()
        self._asked_before = False
        self._arm()
        return [self._ask_machine()]

    def _end(self, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        """It has come to nothing."""
        self._enter(S.ENDED, stimulus)
        self._retry.stop()
        self.deadline = None
        self.last_word = AmendmentRefused(self.body.agreement_id, self.body.number, code, detail)
        dropped = Persist(AmendmentDropped(self.body.offer_id, self.body.number, code, detail, now))
        return [dropped, self.tell(self.last_word)] if self.on_record else [self.tell(self.last_word)]

    # -- common --------------------------------------------------------------------------------------------------

    def _received(self, now: Instant) -> Persist:
        self.on_record = True
        return Persist(AmendmentReceived(self.body.offer_id, self.signed, now))

    def _is_taken(self, now: Instant) -> CapacityTaken:
        """What is remembered before the bank is asked to post it."""
        return CapacityTaken(self.body.offer_id, self.body.number, now)

    def _agreed(self) -> Send:
        return self.tell(AmendmentAgreed(self.body.agreement_id, self.body.number))

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


def document_name(body: Amendment) -> str:
    """What the documents of an amendment are kept under, beside those of its agreement."""
    return f"{body.agreement_id}.amendment-{body.number}"


def refusal_code(refusal: Refusal, *, able: bool) -> str:
    """Code of what a machine does not do; one that can change nothing at all has not looked at the slot."""
    return str(refusal.code) if able else "cannot_resize"
