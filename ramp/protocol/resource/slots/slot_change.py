"""The resource's side of any change of a sold slot's size: what is asked of the machine, and then of the bank.

The machine is asked for another size, and the bank to post what that costs or gives back. Until it has, the old state
holds; if it comes to nothing the machine is asked for the old size again. Questions to a machine may overtake each
other, so each bears the number of its step, and the machine does no step after a later one.

As it is written here something is taken back: the machine is first asked for the size that the slot has, so that one
that can change nothing is known at once, and at the instant that the change names for the smaller one. What is added
goes another way (`growth.py`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from ramp.model.agreement import Amendment, Reclamation
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import Refusal
from ramp.model.sizes.amended import SlotState
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.amending.memory import CapacityTaken
from ramp.protocol.effects import Effect, Persist, Send
from ramp.protocol.machine import StateMachine
from ramp.protocol.reclaiming.memory import CoresTaken
from ramp.protocol.tables import SizeChangeState, Transition
from ramp.protocol.timing import Pace, Retry, earliest

S = SizeChangeState

STEPS = 3
"""Steps of each change at the machine: the size that the slot has, the new one, the old one again."""

STEP_MAX = 10**9
"""No machine has done more steps for one slot; what one says beyond that is not believed."""

Body = TypeVar("Body", Amendment, Reclamation)
Word = TypeVar("Word")


class SlotChange(StateMachine[SizeChangeState], ABC, Generic[Body, Word]):
    """One change of one slot.

    Args:
        conversation_id: in which the slot was sold.
        table: of its moves.
        body: what is changed.
        state: of the slot, which is to be changed.
        first_step: number of the first of its steps at the machine.
        pace: of the selling agent.

    Attributes:
        body: as above.
        first_step: as above.
        on_record: whether something of it is durable; what is not comes to nothing with a restart.
        last_word: what the buyer is told once it has ended; None where it was never told of it.
        why: code and sentence of why it comes to nothing; empty where it does not, or not yet.
        ended_at: when it came to nothing; 0 before that, and where it holds.
        later_step: the first step that the machine would do, where it has refused one that a later one had overtaken; 0
            where it has not said that.
        stranded: why the machine cannot give the slot its old size again, where it cannot; the slot is lost then.
        GIVEN_BACK: what the machine gives back, as a pronoun.
    """

    GIVEN_BACK: ClassVar[str]

    def __init__(
        self,
        conversation_id: str,
        table: frozenset[Transition],
        body: Body,
        state: SlotState,
        first_step: int,
        pace: Pace,
    ) -> None:
        super().__init__(conversation_id, table, S.NEW)
        self.body: Body = body
        self.first_step = first_step
        self.on_record = False
        self.last_word: Word | None = None
        self.ended_at: Instant = 0
        self.later_step = 0
        self.stranded = ""
        self._state = state
        self._retry = Retry(pace)
        self._taken = False
        self._asked_before = False
        self._in_doubt = False
        self._renumbered = False
        self.why: tuple[str, str] = ("", "")

    # -- what the kinds of changes differ in ---------------------------------------------------------------------

    @property
    @abstractmethod
    def is_binding(self) -> bool:
        """Whether no more of the slot may be used than its new size."""

    @abstractmethod
    def _on_able(self, now: Instant) -> list[Effect]:
        """The machine can change what it has set aside."""

    @abstractmethod
    def _is_taken(self, now: Instant) -> CapacityTaken | CoresTaken:
        """What is remembered before the bank is asked to post it."""

    @abstractmethod
    def _is_dropped(self, code: str, detail: str, now: Instant) -> list[Effect]:
        """It has come to nothing."""

    @abstractmethod
    def _to_bank(self) -> Send:
        """What the bank is asked in the present state."""

    # -- entries -------------------------------------------------------------------------------------------------

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart; what was asked of machine and bank before is asked again."""
        self._in_doubt = True
        if self._taken:
            self._enter(S.POSTING, "recover")
            return [self._ask_bank(now)]
        self._enter(S.AGREED, "recover")
        self._arm()
        return []

    def tick(self, now: Instant, *, sold: bool) -> list[Effect]:
        """Take back what is given up, or ask machine or bank again.

        Args:
            now: the present.
            sold: whether the slot is sold as ever, and not being given back.
        """
        body = self.body
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
        return self._ask_again(now)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; when it takes effect is dated, and signed."""
        self._retry.clock_set(by)
        self._arm()

    def on_resized(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has changed the slot, or not, or nobody knows; answers to earlier steps are ignored."""
        if resized.step != self._step():
            return []
        if isinstance(resized.answer, Refusal):
            self.later_step = max(self.later_step, later_step(resized.answer))
        if self.state is S.CHECKING:
            return self._on_checked(resized, now)
        if resized.answer is None:
            self._in_doubt = True
            self._ask_again_later(now)
            return []
        if self.state is S.RESTORING:
            if isinstance(resized.answer, Refusal):
                self._not_restored(resized.answer)
            return self._end(*self.why, "SlotResized", now)
        return self._on_new_size(resized, now)

    # -- the machine ---------------------------------------------------------------------------------------------

    def _on_checked(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """Nothing is on record yet, so that what nobody knows is as good as a refusal.

        A machine that has done steps of which this resource has no record (its journal is older than the machine's
        book) is asked once more, for the step that it would do.
        """
        if resized.answer is None:
            return self._end("machine_unavailable", resized.doubt, "SlotResized", now)
        if isinstance(resized.answer, Refusal) and self.later_step > self.first_step and not self._renumbered:
            self.first_step, self._renumbered = self.later_step, True
            return [self._ask_machine()]
        if isinstance(resized.answer, Refusal):
            code = refusal_code(resized.answer, able=resized.able)
            return self._end(code, resized.answer.detail, "SlotResized", now)
        return self._on_able(now)

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
        self.stranded = f"the slot cannot have its old size again: {refusal.detail}"

    def _ask_machine(self) -> ResizeSlot:
        wanted = self.body if self.state in (S.HOLDING, S.TAKING) else self._state
        return ResizeSlot(self.body.offer_id, self._step(), wanted.cores, wanted.until)

    def _step(self) -> int:
        return self.first_step + {S.CHECKING: 0, S.RESTORING: 2}.get(self.state, 1)

    # -- asking again --------------------------------------------------------------------------------------------

    def _ask_bank(self, now: Instant) -> Send:
        self._retry.begin(now)
        self._arm()
        return self._to_bank()

    def _ask_again(self, now: Instant) -> list[Effect]:
        """Whoever has not answered is asked again, when it is time."""
        if not self._retry.is_due(now):
            return []
        if self.state in (S.NOTICING, S.POSTING):
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
        detail = f"the machine has not given {self.GIVEN_BACK} back by {iso(self.body.valid_until)}"
        return self._restore("expired", detail, "deadline")

    def _restore(self, code: str, detail: str, stimulus: str) -> list[Effect]:
        """It comes to nothing: the machine may have changed the slot, so it is asked for the old size."""
        self._enter(S.RESTORING, stimulus)
        self.why = code, detail
        self._retry.stop()
        self._asked_before = False
        self._arm()
        return [self._ask_machine()]

    def _end(self, code: str, detail: str, stimulus: str, now: Instant) -> list[Effect]:
        self._enter(S.ENDED, stimulus)
        self.why = code, detail
        self._retry.stop()
        self.deadline = None
        self.ended_at = now
        return self._is_dropped(code, detail, now)

    def _settle(self, stimulus: str, word: Word, now: Instant) -> None:
        """The bank has posted it: it holds."""
        self._enter(S.ENDED, stimulus)
        self._retry.answered(now)
        self.deadline = None
        self.last_word = word


def later_step(refusal: Refusal) -> int:
    """The first step that a machine would do, as the nearest value of its refusal (`7 step`); 0 where it names none."""
    named = re.fullmatch(r"([1-9][0-9]{0,9}) step", refusal.nearest)
    return int(named[1]) if named and int(named[1]) <= STEP_MAX else 0


def refusal_code(refusal: Refusal, *, able: bool) -> str:
    """Code of what a machine does not do; one that can change nothing at all has not looked at the slot."""
    return str(refusal.code) if able else "cannot_resize"
