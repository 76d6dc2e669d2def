"""The resource's side of one resize of a sold slot, at the machine and then at the bank.

The machine is asked for the new size, and the bank to post the cost or refund. Until then the old state holds; if the
resize fails, the machine is asked for the old size again. Requests to a machine may overtake each other, so each has a
step number, and the machine ignores a step after a higher one.

When a slot shrinks, the machine is first asked for the present size, which shows whether it can resize at all, and for
the smaller one at the agreed instant. The resource countersigns only after the machine has released the cores, and the
bank then refunds.

When a slot grows, the addition is recorded, then reserved on the machine, so that a restart can repeat or undo the
request. The buyer may use it once the bank has posted the payment. If it is not paid in time, withdrawn or void, the
machine is asked for the old, smaller size, so the slot itself is never lost.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed, document_name
from ramp.model.contents import ChangeAgreed, ChangeDone, ChangePosted, ChangeRefused
from ramp.model.instant import Instant, iso
from ramp.model.offer import NOT_RESIZABLE, Refusal
from ramp.model.seal import Seal
from ramp.model.sizes.amended import SlotState
from ramp.protocol.effects import Effect, Persist, ResizeSlot, SaveAgreement, Send
from ramp.protocol.events import MachineInDoubt, SlotResized
from ramp.protocol.machine import StateMachine
from ramp.protocol.records import CapacityTaken, ChangeDropped, ChangeReceived, ChangeSettled
from ramp.protocol.resource.participant import Participant
from ramp.protocol.timing import Pace, Retried, Retry, earliest
from ramp.protocol.transition_tables import SELLER_CHANGE, ParticipantState, SellerChangeState

S = SellerChangeState

STEPS = 3
"""Steps of each resize at the machine: present size, new size, old size again."""


class SellerChange(StateMachine[SellerChangeState], Retried):
    """One change of a sold slot's size.

    Attributes:
        body: the amendment.
        on_record: whether it is recorded; a restart drops any other.
        last_word: final answer to the buyer, or None.
        stranded: why the machine cannot restore the old size, so that the slot is lost; else empty.
    """

    def __init__(self, signed: Signed, participant: Participant, state: SlotState, pace: Pace) -> None:
        super().__init__(participant.conversation_id, SELLER_CHANGE, S.NEW)
        self.signed = signed
        self.body = signed.change
        self.on_record = False
        self.last_word: ChangeDone | ChangeRefused | None = None
        self.stranded = ""
        self._state = state
        self._participant = participant
        self._pace = pace
        self._retry = Retry(pace)
        self._taken = False
        self._in_doubt = False
        self._why: tuple[str, str] = ("", "")

    @property
    def deadline(self) -> Instant | None:
        return earliest(self._retry.due, self._limit)

    @property
    def _limit(self) -> Instant | None:
        """The instant stated in the document at which the present state ends, or None."""
        body = self.body
        if body.grows:
            return body.valid_until if self.state in (S.PREPARING, S.AGREED) else None
        return {S.AGREED: body.effective_at, S.TAKING: body.valid_until}.get(self.state)

    @property
    def is_binding(self) -> bool:
        """Whether only the new size of the slot may be used, also while the machine is being checked.

        An addition may be used once its payment is posted; until then the old size, which is within the new one.
        """
        return not self.body.grows and (self.state is S.PREPARING or self._is_agreed)

    @property
    def _is_agreed(self) -> bool:
        return self.state in (S.AGREED, S.TAKING, S.POSTING)

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Ask the machine whether it can resize the slot, or to reserve the addition, which is recorded before."""
        self._enter(S.PREPARING, "ContractChange")
        return [self._received(now), self._ask_machine()] if self.body.grows else [self._ask_machine()]

    def replay(self, record: CapacityTaken) -> None:
        self._taken = record.number == self.body.number

    def recover(self, now: Instant) -> list[Effect]:
        """Resume after a restart, repeating requests to machine and bank."""
        self._in_doubt = True
        if self._taken:
            self._enter(S.POSTING, "recover")
            return [self._ask_bank(now)]
        self._enter(S.PREPARING if self.body.grows else S.AGREED, "recover")
        return [self._ask_machine()] if self.body.grows else []

    def on_proposed(self) -> list[Effect]:
        """Repeat the answer to a repeated proposal."""
        return [self._agreed()] if self._is_agreed else []

    def on_resized(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """Take the machine's answer; answers to earlier steps are ignored."""
        if resized.step != self._step():
            return []
        if self.state is S.PREPARING and not self.body.grows:
            return self._on_checked(resized, now)
        if isinstance(resized.answer, MachineInDoubt):
            self._in_doubt = True
            self._retry.again(now)
            return []
        if self.state is S.RESTORING:
            if isinstance(resized.answer, Refusal) and not self.body.grows:
                self.stranded = f"the slot cannot return to its old size: {resized.answer.detail}"
            return self._end(*self._why, "SlotResized", now)
        return self._on_new_size(resized, now)

    def on_bank(self, content: ChangePosted | ChangeRefused, seal: Seal, now: Instant) -> list[Effect]:
        """Take the bank's final answer; `RemoteProtocolError` if it has posted another amount."""
        if self.state is not S.POSTING:
            return []
        if isinstance(content, ChangeRefused):
            return self._restore(content.code, f"the bank refuses the amendment: {content.detail}", "void")
        if content.amount != self.body.amount:
            what = f"got {content.amount}, expected {self.body.amount}"
            raise RemoteProtocolError(f"wrong posted amount in minor units: {what}")
        self._enter(S.ENDED, "posted")
        self._retry.answered(now)
        self.last_word = ChangeDone(self.signed, content, seal)
        settled = Persist(ChangeSettled(self.body.offer_id, content, seal, now))
        # the document first: after a crash between the two the bank is asked again, and both are written
        return [
            SaveAgreement(document_name(self.body.agreement_id, self.body.number), self.signed, seal.text),
            settled,
            self.tell(self.last_word),
        ]

    def on_timer(self, now: Instant) -> list[Effect]:
        """Take cores back at the agreed instant, give up an addition that is not paid in time, or ask again."""
        body = self.body
        if body.grows:
            if self.state in (S.PREPARING, S.AGREED) and now >= body.valid_until:
                detail = f"the bank was not asked to post the amendment by {iso(body.valid_until)}"
                return self._restore("expired", detail, "deadline")
            return self._ask_again(now)
        if self.state is S.AGREED and now >= body.effective_at:
            if self._participant.state is not ParticipantState.SOLD:
                return self._restore("not_active", "the slot is being released", "deadline")
            if now >= body.valid_until:
                return self._too_late()
            self._enter(S.TAKING, "deadline")
            return [self._ask_machine()]
        if self.state is S.TAKING and now >= body.valid_until:
            return self._too_late()
        return self._ask_again(now)

    def on_funded(self, now: Instant) -> list[Effect]:
        """Countersign an addition and have it posted, as the bank has reserved the money."""
        if self.state is not S.AGREED or not self.body.grows:
            return []
        self._enter(S.POSTING, "ChangeAgreed")
        return [Persist(self._is_taken(now)), self._ask_bank(now)]

    def on_withdrawn(self, now: Instant) -> list[Effect]:
        """Give up an addition whose order is void; once the bank was asked to post, only its answer counts."""
        if self.state not in (S.PREPARING, S.AGREED) or not self.body.grows:
            return []
        return self._restore("withdrawn", "the buyer withdrew the amendment", "ChangeWithdrawal")

    def tell(self, content: ChangeDone | ChangeRefused | ChangeAgreed) -> Send:
        performative = {ChangeDone: Performative.INFORM, ChangeRefused: Performative.REFUSE}.get(
            type(content), Performative.AGREE
        )
        body, about = self.body, self.conversation_id
        return Send(Message(performative, body.resource, body.user, about, content, in_reply_to=body.key))

    # -- the machine ---------------------------------------------------------------------------------------------

    def _on_checked(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """Take the first answer; nothing is recorded yet, so doubt counts as a refusal."""
        if isinstance(resized.answer, MachineInDoubt):
            return self._end("machine_unavailable", resized.answer.reason, "SlotResized", now)
        if isinstance(resized.answer, Refusal):
            return self._end(refusal_code(resized.answer), resized.answer.detail, "SlotResized", now)
        self._enter(S.AGREED, "SlotResized")
        return [self._received(now), self._agreed()]

    def _on_new_size(self, resized: SlotResized, now: Instant) -> list[Effect]:
        if self.state is not (S.PREPARING if self.body.grows else S.TAKING):
            return []
        if isinstance(resized.answer, Refusal):
            return self._not_done(resized.answer, now)
        if self.body.grows:
            self._enter(S.AGREED, "SlotResized")
            self._retry.stop()
            return [self._agreed()]
        self._enter(S.POSTING, "SlotResized")
        return [Persist(self._is_taken(now)), self._ask_bank(now)]

    def _not_done(self, refusal: Refusal, now: Instant) -> list[Effect]:
        """Handle a refusal of the new size.

        After an unanswered request the machine may still resize the slot; then it is asked for the old size, as no step
        follows a later one.
        """
        if self._in_doubt:
            return self._restore(refusal_code(refusal), refusal.detail, "SlotResized")
        return self._end(refusal_code(refusal), refusal.detail, "SlotResized", now)

    def _ask_machine(self) -> ResizeSlot:
        reserves = self.state is S.PREPARING and self.body.grows
        wanted = self.body if reserves or self.state is S.TAKING else self._state
        return ResizeSlot(self.body.offer_id, self._step(), wanted.cores, wanted.until)

    def _step(self) -> int:
        """Return the step number; later proposals have higher ones."""
        return STEPS * self.body.number + {S.PREPARING: int(self.body.grows), S.RESTORING: 2}.get(self.state, 1)

    # -- asking again --------------------------------------------------------------------------------------------

    def _ask_bank(self, now: Instant) -> Send:
        self._retry.begin(now)
        return self._to_bank()

    def _ask_again(self, now: Instant) -> list[Effect]:
        if not self._retry.is_due(now):
            return []
        if self.state is S.POSTING:
            self._retry.again(now)
            return [self._to_bank()]
        self._retry.stop()
        return [self._ask_machine()]

    # -- the end -------------------------------------------------------------------------------------------------

    def _too_late(self) -> list[Effect]:
        detail = f"the machine has not released the cores by {iso(self.body.valid_until)}"
        return self._restore("expired", detail, "deadline")

    def _restore(self, code: str, detail: str, stimulus: str) -> list[Effect]:
        """Give up; the machine may have resized the slot, so ask for the old size."""
        self._enter(S.RESTORING, stimulus)
        self._why = code, detail
        self._retry = Retry(self._pace)
        return [self._ask_machine()]

    def _end(self, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.ENDED, stimulus)
        self._retry.stop()
        self.last_word = ChangeRefused(self.body.agreement_id, self.body.number, code, detail)
        dropped = Persist(ChangeDropped(self.body.offer_id, self.body.number, code, detail, now))
        return [dropped, self.tell(self.last_word)] if self.on_record else [self.tell(self.last_word)]

    # -- common --------------------------------------------------------------------------------------------------

    def _received(self, now: Instant) -> Persist:
        self.on_record = True
        return Persist(ChangeReceived(self.body.offer_id, self.signed, now))

    def _is_taken(self, now: Instant) -> CapacityTaken:
        return CapacityTaken(self.body.offer_id, self.body.number, now)

    def _agreed(self) -> Send:
        return self.tell(ChangeAgreed(self.body.agreement_id, self.body.number))

    def _to_bank(self) -> Send:
        body, about = self.body, self.conversation_id
        return Send(Message(Performative.REQUEST, body.resource, body.bank, about, self.signed, reply_with=body.key))


def refusal_code(refusal: Refusal) -> str:
    """Return the code of a machine's refusal; `cannot_resize` if it can resize nothing."""
    return "cannot_resize" if refusal == NOT_RESIZABLE else str(refusal.code)
