"""How a remote party learns of revocations: it asks, and receives every change."""

from __future__ import annotations

from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import RevocationNotice, RevocationQuery
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.seal import Role
from ramp.protocol.belief import said_by
from ramp.protocol.conversations import Alarm
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.enrolment.authority import KeepRevocations, RevocationsKept
from ramp.protocol.events import Event
from ramp.protocol.party import Party
from ramp.protocol.progress import MembershipEnded, RevocationsFollowed

ASK_AGAIN: Final[Duration] = 10 * SECOND
"""Pause before an unanswered question is asked again."""


class RevocationWatch(Party):
    """Follows the revocation list for one agent.

    Args:
        pause: between two questions.
        number: of the present list; 0 without a list.
        expires_at: expiry of that list.
    """

    def __init__(self, name: str, *, office: str, pause: Duration, number: int = 0, expires_at: Instant = 0) -> None:
        super().__init__(name)
        self._office = office
        self._pause = pause
        self._number = number
        self._asked = 0
        self._next_question = Alarm()
        self._expiry = Alarm(is_date=True)
        self._expiry.deadline = expires_at + 1 if number else None
        self.task(self._next_question, self._ask)
        self.task(self._expiry, self._expired)

    def start(self, now: Instant) -> list[Effect]:
        """Ask at once, as revocations may have been missed."""
        return [*self._ask(now), *self._expired(now)]

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a list, or the result of storing it.

        Raises:
            RemoteProtocolError: if a message is not for a follower, or not sealed by the office.
        """
        match event:
            case Message():
                return self._on_message(event, now)
            case RevocationsKept(number, expires_at, problem):
                return self._on_kept(number, expires_at, problem, now)
        return []

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        notice = message.content
        if not isinstance(notice, RevocationNotice):
            raise RemoteProtocolError(f"{type(notice).__name__} is not a message for a follower of revocations")
        said_by(message, self._office, Role.ENROLMENT)
        self._next_question.deadline = now + self._pause
        effects: list[Effect] = []
        if notice.revocations and notice.number > self._number:
            effects.append(KeepRevocations(notice.revocations))
        if notice.reason:
            effects.append(Report(MembershipEnded(notice.reason)))
        return effects

    def _on_kept(self, number: int, expires_at: Instant, problem: str, now: Instant) -> list[Effect]:
        if problem:
            return [Report(RevocationsFollowed(0, problem))]
        self._number, self._expiry.deadline = number, expires_at + 1
        return [Report(RevocationsFollowed(number, "")), *self._expired(now)]

    def _ask(self, now: Instant) -> list[Effect]:
        self._asked += 1
        self._next_question.deadline = now + min(self._pause, ASK_AGAIN)
        query = RevocationQuery(f"revocations-{self._asked}", self._number)
        return [Send(Message(Performative.QUERY_REF, self.name, self._office, query.query_id, query))]

    def _expired(self, now: Instant) -> list[Effect]:
        """Report once that the list has expired; its revocations stay in force."""
        if self._expiry.deadline is None or now < self._expiry.deadline:
            return []
        self._expiry.deadline = None
        return [Report(RevocationsFollowed(self._number, "the list has expired and no newer one has arrived"))]
