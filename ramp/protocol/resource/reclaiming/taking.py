"""The resource's side of one reclamation: from its own decision to the bank's word that it is posted.

The machine is first asked for the size that the slot has, so that one that can change nothing takes nothing back. Then
the bank puts the reclamation on record, with which the notice begins, and the buyer is told. At its instant the machine
is asked for the smaller size, and the bank to pay for what it has given back. Until that is posted the old state holds;
if it comes to nothing the machine is asked for the old size again.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Reclamation, Signed
from ramp.model.contents import (
    Content,
    Reclaimed,
    ReclamationAnnounced,
    ReclamationNotice,
    ReclamationNoticed,
    ReclamationPosted,
    ReclamationRefused,
    ReclamationTaken,
)
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import Refusal
from ramp.model.seal import Seal
from ramp.model.sizes.amended import SlotState
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.effects import Effect, Persist, SaveAgreement, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.reclaiming.asking import GAVE_WAY, TOO_EARLY
from ramp.protocol.reclaiming.memory import (
    CoresTaken,
    ReclaimingRecord,
    ReclamationDrawn,
    ReclamationDropped,
    ReclamationOnRecord,
    ReclamationSettled,
)
from ramp.protocol.tables import RECLAMATION, SizeChangeState
from ramp.protocol.timing import Pace, Retry, earliest

S = SizeChangeState

BEFORE_TIME = (S.CHECKING, S.NOTICING, S.AGREED)
"""States in which nothing has been taken yet."""


class Taking(StateMachine[SizeChangeState]):
    """One reclamation.

    Args:
        body: what is taken back.
        agreement: what was bought, signed by the buyer, as it is brought to the bank.
        changes: all that was posted of the slot, in its order, signed.
        state: of the slot, which is to be changed.
        first_step: number of the first of its steps at the machine (`size_change.STEPS`).
        pace: of the selling agent.

    Attributes:
        body: as above.
        last_word: what the buyer is told once it has ended; None where it was never told of it.
        announcement: what the buyer is told once the bank has it on record.
        stranded: why the machine cannot give the slot its old size again, where it cannot; the slot is lost then.
        heard: whether the buyer has said that it knows.
    """

    def __init__(
        self,
        body: Reclamation,
        agreement: Signed,
        changes: tuple[Signed, ...],
        state: SlotState,
        first_step: int,
        pace: Pace,
    ) -> None:
        assert isinstance(agreement.body, Agreement)
        super().__init__(agreement.body.request_id, RECLAMATION, S.NEW)
        self.body = body
        self.last_word: Reclaimed | ReclamationRefused | None = None
        self.announcement: ReclamationAnnounced | None = None
        self.stranded = ""
        self.heard = False
        self.first_step = first_step
        self._brought = ReclamationNotice(Signed(body), agreement, changes)
        self._state = state
        self._retry = Retry(pace)
        self._taken = False
        self._asked_before = False
        self._why: tuple[str, str] = ("", "")

    @property
    def is_binding(self) -> bool:
        """Whether no more of the slot may be used than its new size: from its time on, and no sooner."""
        return self.state in (S.TAKING, S.POSTING)

    def begins(self, now: Instant) -> bool:
        """Whether its time has come and nothing has been taken yet."""
        return self.state is S.AGREED and now >= self.body.effective_at

    @property
    def document(self) -> Signed:
        """The reclamation, to be signed by the resource when it leaves."""
        return self._brought.reclamation

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self) -> list[Effect]:
        """It fits: see whether the machine can change what it has set aside."""
        self._enter(S.CHECKING, "ReclaimOrdered")
        return [self._ask_machine()]

    def replay(self, record: ReclaimingRecord) -> None:
        """Take a later record of the journal, before `recover`."""
        if isinstance(record, ReclamationOnRecord):
            self.announcement = ReclamationAnnounced(record.noticed, record.seal)
        elif isinstance(record, CoresTaken):
            self._taken = True

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart; what was asked of machine and bank before is asked again."""
        if self._taken:
            self._enter(S.POSTING, "recover")
            return [self._ask_bank(now)]
        if self.announcement is None:
            self._enter(S.NOTICING, "recover")
            return [self._ask_bank(now)]
        self._enter(S.AGREED, "recover")
        self.deadline = self.body.effective_at
        return []

    def tick(self, now: Instant, *, sold: bool, old_bank: str) -> list[Effect]:
        """Take the cores, or ask machine or bank again.

        Args:
            now: the present.
            sold: whether the slot is sold as ever, and not being given back.
            old_bank: of no account here: what an earlier bank does not know is not begun.
        """
        body = self.body
        if self.state is S.NOTICING and now >= body.effective_at:
            return self._end("no_answer", f"{body.bank} has not put it on record in time", "deadline", now)
        if self.state is S.AGREED and now >= body.effective_at:
            if not sold:
                return self._restore("not_active", "the slot is being given back", "deadline")
            if now >= body.valid_until:
                return self._too_late()
            self._enter(S.TAKING, "deadline")
            self._arm()
            return [self._ask_machine()]
        if self.state is S.TAKING and now >= body.valid_until:
            return self._too_late()
        if not self._retry.is_due(now):
            return []
        if self.state in (S.NOTICING, S.POSTING):
            self._retry.again(now)
            self._arm()
            return [self._to_bank()]
        self._retry.stop()
        self._arm()
        return [self._ask_machine()]

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; when it takes effect is dated, and signed."""
        self._retry.clock_set(by)
        self._arm()

    def give_way(self, now: Instant) -> list[Effect]:
        """The buyer's own proposal has crossed it and goes first."""
        assert self.state in BEFORE_TIME, "nothing has been taken yet"
        detail = "the buyer's own proposal has crossed it, and goes first"
        recorded = self.state is not S.CHECKING
        return self._end(GAVE_WAY, detail, "Amendment", now, recorded=recorded)

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
            return [Persist(CoresTaken(self.body.offer_id, self.body.number, now)), self._ask_bank(now)]
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
        self._enter(S.NOTICING, "SlotResized")
        return [Persist(ReclamationDrawn(self.body.offer_id, self.body, now)), self._ask_bank(now)]

    def _ask_again_later(self, now: Instant) -> None:
        if self._asked_before:
            self._retry.again(now)
        else:
            self._retry.begin(now)
            self._asked_before = True
        self._arm()

    # -- the bank ------------------------------------------------------------------------------------------------

    def on_bank(
        self, content: ReclamationNoticed | ReclamationPosted | ReclamationRefused, seal: Seal, now: Instant
    ) -> list[Effect]:
        """The bank's word; all but that it is too early is final.

        Raises:
            RemoteProtocolError: if it has posted something else.
        """
        body = self.body
        if self.state is S.NOTICING and isinstance(content, ReclamationNoticed):
            self._enter(S.AGREED, "ReclamationNoticed")
            self._retry.answered(now)
            self._arm()
            self.announcement = ReclamationAnnounced(content, seal)
            return [Persist(ReclamationOnRecord(body.offer_id, content, seal, now))]
        if self.state is S.NOTICING and isinstance(content, ReclamationRefused):
            return self._end(content.code, f"the bank does not note it: {content.detail}", "ReclamationRefused", now)
        if self.state is not S.POSTING or isinstance(content, ReclamationNoticed):
            return []
        if isinstance(content, ReclamationRefused):
            if content.code == TOO_EARLY:  # by the bank's clock; it is asked again
                return []
            detail = f"the bank does not post it: {content.detail}"
            return self._restore(content.code, detail, "ReclamationRefused")
        if (content.refund, content.compensation) != (body.refund, body.compensation):
            paid, right = f"{content.refund} and {content.compensation}", f"{body.refund} and {body.compensation}"
            raise RemoteProtocolError(f"{paid} minor units were posted; right would be {right}")
        self._enter(S.ENDED, "ReclamationPosted")
        self._retry.answered(now)
        self.deadline = None
        self.last_word = Reclaimed(self.document, content, seal)
        settled = Persist(ReclamationSettled(body.offer_id, content, seal, now))
        # the document first: after a failure between the two the bank is asked again, and both are written
        return [SaveAgreement(document_name(body), self.document, seal.text), settled]

    # -- common --------------------------------------------------------------------------------------------------

    def _too_late(self) -> list[Effect]:
        detail = f"the machine has not given them back by {iso(self.body.valid_until)}"
        return self._restore("expired", detail, "deadline")

    def _restore(self, code: str, detail: str, stimulus: str) -> list[Effect]:
        """It comes to nothing: the machine may have changed the slot, so it is asked for the old size."""
        self._enter(S.RESTORING, stimulus)
        self._why = code, detail
        self._retry.stop()
        self._asked_before = False
        self._arm()
        return [self._ask_machine()]

    def _end(self, code: str, detail: str, stimulus: str, now: Instant, *, recorded: bool = True) -> list[Effect]:
        """It comes to nothing; the buyer is told where it may have heard of it."""
        self._enter(S.ENDED, stimulus)
        self._retry.stop()
        self.deadline = None
        if not recorded:
            return []
        self.last_word = ReclamationRefused(self.body.agreement_id, self.body.number, code, detail)
        return [Persist(ReclamationDropped(self.body.offer_id, self.body.number, code, detail, now))]

    def _step(self) -> int:
        return self.first_step + {S.CHECKING: 0, S.RESTORING: 2}.get(self.state, 1)

    def _ask_machine(self) -> ResizeSlot:
        wanted = self.body if self.state is S.TAKING else self._state
        return ResizeSlot(self.body.offer_id, self._step(), wanted.cores, wanted.until)

    def _ask_bank(self, now: Instant) -> Send:
        self._retry.begin(now)
        self._arm()
        return self._to_bank()

    def _to_bank(self) -> Send:
        body = self.body
        content: Content = self._brought
        if self.state is S.POSTING:
            content = ReclamationTaken(body.agreement_id, body.number)
        reference = f"{body.agreement_id}#r{body.number}"
        return Send(
            Message(Performative.REQUEST, body.resource, body.bank, self.conversation_id, content, reply_with=reference)
        )

    def _arm(self) -> None:
        limit = {S.TAKING: self.body.valid_until, S.NOTICING: self.body.effective_at}.get(self.state)
        starts = self.body.effective_at if self.state is S.AGREED else None
        self.deadline = earliest(self._retry.due, limit, starts)


def document_name(body: Reclamation) -> str:
    """What the documents of a reclamation are kept under, beside those of its agreement."""
    return f"{body.agreement_id}.reclamation-{body.number}"
