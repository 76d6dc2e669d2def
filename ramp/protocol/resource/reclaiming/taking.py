"""The resource's side of one reclamation: from its own decision to the bank's word that it is posted.

Once the machine can change the slot at all the bank puts the reclamation on record, with which the notice begins, and
the buyer is told. At its instant the cores are taken, and the bank is asked to pay for what the machine has given back.
What it goes through with the machine is in `ramp.protocol.resource.slots.slot_change`.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

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
from ramp.model.instant import Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.seal import Seal
from ramp.model.sizes.amended import SlotState
from ramp.protocol.amending.asking import SlotResized
from ramp.protocol.effects import Effect, Persist, SaveAgreement, Send
from ramp.protocol.reclaiming.asking import GAVE_WAY, TOO_EARLY
from ramp.protocol.reclaiming.memory import (
    BuyerHeard,
    CoresTaken,
    ReclaimingRecord,
    ReclamationDrawn,
    ReclamationDropped,
    ReclamationOnRecord,
    ReclamationSettled,
)
from ramp.protocol.resource.slots.slot_change import S, SlotChange
from ramp.protocol.tables import RECLAMATION
from ramp.protocol.timing import Pace

BEFORE_TIME = (S.CHECKING, S.NOTICING, S.AGREED)
"""States in which nothing has been taken yet."""


class MakeRoom(Protocol):
    """Ends the jobs that do not fit into what is left of a slot."""

    def __call__(self, offer_id: str, cores: int, now: Instant, *, refused: bool) -> list[Effect] | None:
        """See `JobDesk.make_room`."""
        ...


class Taking(SlotChange[Reclamation, Reclaimed | ReclamationRefused]):
    """One reclamation.

    Args:
        body: what is taken back.
        agreement: what was bought, signed by the buyer, as it is brought to the bank.
        changes: all that was posted of the slot, in its order, signed.
        state: of the slot, which is to be changed.
        first_step: number of the first of its steps at the machine.
        pace: of the selling agent.
        make_room: see `JobDesk.make_room`.

    Attributes:
        announcement: what the buyer is told once the bank has it on record.
        heard: whether the buyer has said that it knows.
    """

    GIVEN_BACK: ClassVar[str] = "them"

    def __init__(
        self,
        body: Reclamation,
        agreement: Signed,
        changes: tuple[Signed, ...],
        state: SlotState,
        first_step: int,
        pace: Pace,
        make_room: MakeRoom,
    ) -> None:
        assert isinstance(agreement.body, Agreement)
        super().__init__(agreement.body.request_id, RECLAMATION, body, state, first_step, pace)
        self.announcement: ReclamationAnnounced | None = None
        self.heard = False
        self._make_room = make_room
        self._room_made = False
        self._jobs_end = False
        self._brought = ReclamationNotice(Signed(body), agreement, changes)

    @property
    def is_binding(self) -> bool:
        """Whether no more of the slot may be used than its new size: from its time on, and no sooner."""
        return self.state in (S.TAKING, S.POSTING)

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
        elif isinstance(record, BuyerHeard):
            self.heard = True
        elif isinstance(record, CoresTaken):
            self._taken = True

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart; what was asked of machine and bank before is asked again."""
        if self._taken or self.announcement is not None:
            return super().recover(now)
        self._enter(S.NOTICING, "recover")
        return [self._ask_bank(now)]

    def tick(self, now: Instant, *, sold: bool) -> list[Effect]:
        """Give up what the bank has not noted in time, take the cores, or ask again; see `SlotChange.tick`."""
        if self.state is S.NOTICING and now >= self.body.effective_at:
            return self._end("no_answer", f"{self.body.bank} has not put it on record in time", "deadline", now)
        return super().tick(now, sold=sold)

    def give_way(self, now: Instant) -> list[Effect]:
        """The buyer's own proposal has crossed it and goes first."""
        assert self.state in BEFORE_TIME, "nothing has been taken yet"
        detail = "the buyer's own proposal has crossed it, and goes first"
        return self._end(GAVE_WAY, detail, "Amendment", now)

    def on_heard(self, now: Instant) -> list[Effect]:
        """The buyer knows of it: from now on it gives way to nothing, also after a restart."""
        if self.heard:
            return []
        self.heard = True
        return [Persist(BuyerHeard(self.body.offer_id, self.body.number, now))] if self.on_record else []

    # -- the machine ---------------------------------------------------------------------------------------------

    def _on_new_size(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has taken the cores, or not: only then jobs end, or where they alone are in its way."""
        if self.state is not S.TAKING:
            return []
        refusal = resized.answer if isinstance(resized.answer, Refusal) else None
        if refusal is not None and refusal.code is not RefusalCode.JOB_IN_THE_WAY:
            return super()._on_new_size(resized, now)
        offer_id, cores = self.body.offer_id, self.body.cores
        if refusal is None:
            ended = self._make_room(offer_id, cores, now, refused=False)
            return [*(ended or ()), *super()._on_new_size(resized, now)]
        ended = self._make_room(offer_id, cores, now, refused=not self._jobs_end)
        self._room_made = self._room_made or ended is not None
        if not self._room_made:  # what is in the way is none of the jobs that were ordered here
            return super()._on_new_size(resized, now)
        ending = ended is not None
        if ending is not self._jobs_end:  # others end, or they have, perhaps only since the machine was asked
            self._jobs_end, self._asked_before = ending, False
        self._ask_again_later(now)  # they take a while to end
        return ended or []

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
        self._settle("ReclamationPosted", Reclaimed(self.document, content, seal), now)
        settled = Persist(ReclamationSettled(body.offer_id, content, seal, now))
        # the document first: after a failure between the two the bank is asked again, and both are written
        return [SaveAgreement(document_name(body), self.document, seal.text), settled]

    # -- common --------------------------------------------------------------------------------------------------

    def _on_able(self, now: Instant) -> list[Effect]:
        self._enter(S.NOTICING, "SlotResized")
        self.on_record = True
        drawn = ReclamationDrawn(self.body.offer_id, self.body, now, self.first_step)
        return [Persist(drawn), self._ask_bank(now)]

    def _is_taken(self, now: Instant) -> CoresTaken:
        return CoresTaken(self.body.offer_id, self.body.number, now)

    def _is_dropped(self, code: str, detail: str, now: Instant) -> list[Effect]:
        """The buyer is told where it may have heard of it."""
        if not self.on_record:
            return []
        self.last_word = ReclamationRefused(self.body.agreement_id, self.body.number, code, detail)
        return [Persist(ReclamationDropped(self.body.offer_id, self.body.number, code, detail, now))]

    def _to_bank(self) -> Send:
        body = self.body
        content: Content = self._brought
        if self.state is S.POSTING:
            content = ReclamationTaken(body.agreement_id, body.number)
        reference = f"{body.agreement_id}#r{body.number}"
        return Send(
            Message(Performative.REQUEST, body.resource, body.bank, self.conversation_id, content, reply_with=reference)
        )

    def _limit(self) -> Instant | None:
        return self.body.effective_at if self.state is S.NOTICING else super()._limit()


def document_name(body: Reclamation) -> str:
    """What the documents of a reclamation are kept under, beside those of its agreement."""
    return f"{body.agreement_id}.reclamation-{body.number}"
