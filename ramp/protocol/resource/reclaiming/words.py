"""What buyers are told of their slots' cores until they say that they have heard it: that they go, and have gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Reclamation
from ramp.model.contents import Reclaimed, ReclamationAnnounced, ReclamationHeard
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.protocol.effects import Effect, Send
from ramp.protocol.timing import Pace, Retry, earliest

REMIND_EVERY: Final[Duration] = MINUTE
"""So seldom in the end a buyer is told again who says nothing; the bank has told it as well."""


@dataclass(slots=True)
class _Word:
    """What a buyer is told of one reclamation, until when, and when it is told again."""

    message: Message
    posted: bool
    until: Instant
    retry: Retry


class Words:
    """All that one resource has to tell of reclamations.

    Of each the last word. Who has not heard of one cannot make anything of those that follow it, so a word stays until
    it is heard itself.

    Args:
        resource: the agent's name.
        pace: of the resource.
    """

    def __init__(self, resource: str, pace: Pace) -> None:
        self._resource = resource
        self._pace = pace
        self._words: dict[tuple[str, int], _Word] = {}

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        return earliest(*(word.retry.due for word in self._words.values()))

    @property
    def awaited(self) -> tuple[str, ...]:
        """Buyers who have not said that they know what was posted."""
        return tuple(word.message.receiver for word in self._words.values() if word.posted)

    def tell(
        self,
        offer_id: str,
        conversation_id: str,
        content: ReclamationAnnounced | Reclaimed,
        until: Instant,
        now: Instant,
    ) -> list[Effect]:
        """Tell a buyer something, again and again until it is heard or the slot is over."""
        posted = isinstance(content, Reclaimed)
        body = (content if isinstance(content, Reclaimed) else content.noticed).reclamation.body
        assert isinstance(body, Reclamation)
        number = body.number
        reference = f"{body.agreement_id}#r{number}{'+' if posted else ''}"
        message = Message(
            Performative.INFORM, self._resource, body.user, conversation_id, content, reply_with=reference
        )
        word = self._words[offer_id, number] = _Word(message, posted, until, Retry(self._pace, REMIND_EVERY))
        word.retry.begin(now)
        return [Send(message)]

    def heard(self, offer_id: str, word: ReclamationHeard, now: Instant) -> None:
        """A buyer knows."""
        told = self._words.get((offer_id, word.number))
        if told is not None and word.posted >= told.posted:
            told.retry.answered(now)
            del self._words[offer_id, word.number]

    def not_understood(self, message: Message) -> None:
        """A buyer's program does not know what it is told, or does not believe it: it is told no more."""
        for key, word in list(self._words.items()):
            if (word.message.receiver, word.message.reply_with) == (message.sender, message.in_reply_to):
                del self._words[key]

    def tick(self, now: Instant) -> list[Effect]:
        """Tell again what was not heard."""
        effects: list[Effect] = []
        for key, word in list(self._words.items()):
            if now >= word.until:
                del self._words[key]
            elif word.retry.is_due(now):
                word.retry.again(now)
                effects.append(Send(word.message))
        return effects

    def over(self, offer_id: str, number: int) -> None:
        """A reclamation has ended: say no more of what was to come."""
        self._words.pop((offer_id, number), None)

    def forget(self, offer_id: str) -> None:
        """Say no more of a slot."""
        for key in [key for key in self._words if key[0] == offer_id]:
            del self._words[key]

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        for word in self._words.values():
            word.retry.clock_set(by)
