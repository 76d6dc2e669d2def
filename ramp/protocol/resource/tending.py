"""Sold slots, which the machine may lose or move.

The machine regularly gets all sold slots and answers with lost and moved ones. One that must know the buyers
(`ResourcePlugin.tended`) also gets their local accounts, at once after a sale. It is asked even without a sold slot, so
that its failure is noticed before a buyer comes. Repetition makes records unnecessary: after a restart the buyer of a
moved slot gets the message once more, without effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.contents import NotUnderstood, SlotMoved, SlotMoveHeard
from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.model.seal import Role
from ramp.model.slot import SlotMove
from ramp.protocol.belief import sealed_by
from ramp.protocol.conversations import Conversations, Registry
from ramp.protocol.effects import Effect, Send, TendSlots
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.participant import Participant
from ramp.protocol.timing import Pace, Retry
from ramp.protocol.transition_tables import ParticipantState

TEND_EVERY: Final[Duration] = 15 * SECOND
"""Time within which a failed node or system is noticed, and a failed handover repeated."""

LOOK_EVERY: Final[Duration] = MINUTE
"""Shortest pause between two questions whether any other machine still has its sold slots."""

REMIND_EVERY: Final[Duration] = 5 * MINUTE
"""Longest pause between repeats of a move; the buyer's agent may be away for days while its server stores messages."""


class MoveNotice:
    """A move's message to the buyer, repeated until it is acknowledged or the slot is over.

    Args:
        message: to the buyer.
        moved_at: when the machine moved the slot.
        sale: the sold offer.
        pace: of the resource.
    """

    def __init__(self, message: Message, moved_at: Instant, sale: Participant, pace: Pace) -> None:
        self.message = message
        self.moved_at = moved_at
        self.sale = sale
        self.retry = Retry(pace, REMIND_EVERY)

    @property
    def deadline(self) -> Instant | None:
        return self.retry.due

    def start(self, now: Instant) -> list[Effect]:
        self.retry.begin(now)
        return [Send(self.message)]

    def stop(self) -> list[Effect]:
        self.retry.stop()
        return []

    def on_timer(self, now: Instant) -> list[Effect]:
        if now >= self.sale.size[1]:
            return self.stop()
        self.retry.again(now)
        return [Send(self.message)]

    def on_message(self, message: Message, answer: SlotMoveHeard, now: Instant) -> list[Effect]:
        """Stop after the buyer has recorded this move."""
        if answer.moved_at == self.moved_at:
            self.retry.answered(now)
        return []

    def clock_set(self, by: Duration) -> None:
        self.retry.clock_set(by)


class Tending:
    """The sold slots of one resource."""

    def __init__(self, resource: str, terms: LaunchTerms | None, pace: Pace, registry: Registry) -> None:
        self._resource = resource
        self._terms = terms
        self._pace = pace
        self.deadline: Instant | None = None
        self._tended = False
        self._look_at: Instant = 0
        self._sold: dict[str, Participant] = {}
        self._notices: Conversations[MoveNotice] = Conversations(registry)

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
        account = self._terms.account if self._terms is not None else lambda _: ""
        slots = tuple((key, account(each.user)) for key, each in self._sold.items())
        return [TendSlots(slots)] if slots or self._tended else []

    def moved(self, moves: Sequence[tuple[str, SlotMove]], now: Instant) -> list[Effect]:
        """Report moved slots to their buyers."""
        effects: list[Effect] = []
        for key, move in moves:
            sale, before = self._sold.get(key), self._notices.get(key)
            if sale is None or now >= sale.size[1] or (before is not None and move.moved_at <= before.moved_at):
                continue
            agreed = sale.agreed
            present = move.reservation_id or agreed.reservation_id
            content = SlotMoved(agreed.agreement_id, present, move.placement, move.moved_at)
            reference = f"moved/{key}/{move.moved_at}"
            message = Message(
                Performative.INFORM, self._resource, sale.user, agreed.request_id, content, reply_with=reference
            )
            notice = self._notices.add(key, MoveNotice(message, move.moved_at, sale, self._pace))
            effects += self._notices.act(key, partial(notice.start, now), now)
        return effects

    def answered(self, message: Message, answer: SlotMoveHeard | NotUnderstood, now: Instant) -> None:
        """Stop repeating a move that its buyer has recorded or does not understand.

        Raises:
            RemoteProtocolError: if the buyer did not seal it.
        """
        if isinstance(answer, NotUnderstood):
            for key, notice in self._notices.items():
                if (notice.message.receiver, notice.message.reply_with) == (message.sender, message.in_reply_to):
                    self._notices.act(key, notice.stop, now)
            return
        sealed_by(message, Role.USER)
        for key in self._notices:
            sale = self._sold.get(key)
            if sale is not None and (sale.user, sale.agreed.agreement_id) == (message.sender, answer.agreement_id):
                self._notices.act(key, partial(self._notices[key].on_message, message, answer, now), now)
                return

    def forget(self, key: str) -> None:
        self._sold.pop(key, None)
        self._notices.drop(key)

    def clock_set(self, by: Duration) -> None:
        self._hurry()
        self._look_at += by

    def _hurry(self) -> None:
        self.deadline = 0 if self._tended else None
