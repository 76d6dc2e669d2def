"""Sold slots, which the machine may lose or move.

The machine regularly gets all sold slots and answers with lost and moved ones. One that must know the buyers
(`ResourcePlugin.tended`) also gets their local accounts, at once after a sale. It is asked even without a sold slot, so
that its failure is noticed before a buyer comes. Repetition makes records unnecessary: after a restart the buyer of a
moved slot gets the message once more, without effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.contents import NotUnderstood, SlotMoved, SlotMoveHeard
from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.model.seal import Role
from ramp.model.slot import SlotMove
from ramp.protocol.belief import sealed_by
from ramp.protocol.conversations import Conversations, Registry
from ramp.protocol.effects import Effect, Send, TendSlots
from ramp.protocol.questions import Question
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.participant import Participant
from ramp.protocol.timing import Pace
from ramp.protocol.transition_tables import ParticipantState

TEND_EVERY: Final[Duration] = 15 * SECOND
"""Time within which a failed node or system is noticed, and a failed handover repeated."""

LOOK_EVERY: Final[Duration] = MINUTE
"""Shortest pause between two questions whether any other machine still has its sold slots."""

REMIND_EVERY: Final[Duration] = 5 * MINUTE
"""Longest pause between repeats of a move; the buyer's agent may be away for days while its server stores messages."""


class Tending:
    """The sold slots of one resource.

    A move's message to the buyer is repeated until it is acknowledged or the slot is over.
    """

    def __init__(self, resource: str, terms: LaunchTerms, pace: Pace, registry: Registry) -> None:
        self._resource = resource
        self._terms = terms
        self._pace = pace
        self.deadline: Instant | None = None
        self._tended = False
        self._look_at: Instant = 0
        self._sold: dict[str, Participant] = {}
        self._notices: Conversations[Question] = Conversations(registry)

    def opened(self, *, tended: bool) -> None:
        """Note whether the opened machine has to be tended."""
        self._tended = tended
        self._hurry()

    def kept(self, participant: Participant) -> None:
        """Follow a participant into or out of a sale."""
        key = participant.offer.offer_id
        if participant.state is not ParticipantState.SOLD:
            self.forget(key)
        elif key not in self._sold:
            self._sold[key] = participant
            self._hurry()

    def on_timer(self, now: Instant) -> list[Effect]:
        """Repeat the slots to the machine."""
        self.deadline = now + TEND_EVERY
        return self._ask(now)

    def look(self, now: Instant) -> list[Effect]:
        """Ask a machine that is not tended for its sold slots, if the last time was long ago."""
        if self._tended or now < self._look_at:
            return []
        self._look_at = now + LOOK_EVERY
        return self._ask(now)

    def _ask(self, now: Instant) -> list[Effect]:
        self._sold = {key: each for key, each in self._sold.items() if now < each.size[1]}
        slots = tuple((key, self._terms.account(each.user)) for key, each in self._sold.items())
        return [TendSlots(slots)] if slots or self._tended else []

    def moved(self, moves: Sequence[tuple[str, SlotMove]], now: Instant) -> list[Effect]:
        """Report moved slots to their buyers."""
        effects: list[Effect] = []
        for key, move in moves:
            sale, before = self._sold.get(key), self._notices.get(key)
            if sale is None or now >= sale.size[1] or (before is not None and move.moved_at <= _told(before).moved_at):
                continue
            agreed = sale.agreed
            present = move.reservation_id or agreed.reservation_id
            content = SlotMoved(agreed.agreement_id, present, move.placement, move.moved_at)
            reference = f"moved/{key}/{move.moved_at}"
            message = Message(
                Performative.INFORM, self._resource, sale.user, agreed.request_id, content, reply_with=reference
            )
            left = sale.size[1] - now
            notice = Question(Send(message), None, self._pace, now, limit=left, longest=REMIND_EVERY)
            self._notices.add(key, notice)
            self._notices.arm(key)
            effects.append(notice.send)
        return effects

    def answered(self, message: Message, answer: SlotMoveHeard | NotUnderstood, now: Instant) -> None:
        """Stop repeating a move that its buyer has recorded or does not understand.

        Raises:
            RemoteProtocolError: if the buyer did not seal it.
        """
        if isinstance(answer, NotUnderstood):
            for key, notice in self._notices.items():
                said = notice.send.message
                if (said.receiver, said.reply_with) == (message.sender, message.in_reply_to):
                    notice.stop()
                    self._notices.arm(key)
            return
        sealed_by(message, Role.USER)
        for key, notice in self._notices.items():
            told = _told(notice)
            heard = (notice.send.message.receiver, told.agreement_id, told.moved_at)
            if heard == (message.sender, answer.agreement_id, answer.moved_at):
                notice.answered(now)
                self._notices.arm(key)

    def forget(self, key: str) -> None:
        self._sold.pop(key, None)
        self._notices.drop(key)

    def clock_set(self, by: Duration) -> None:
        self._hurry()
        self._look_at += by

    def _hurry(self) -> None:
        self.deadline = 0 if self._tended else None


def _told(notice: Question) -> SlotMoved:
    content = notice.send.message.content
    assert isinstance(content, SlotMoved)
    return content
