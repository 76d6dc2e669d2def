"""How a remote party learns of revocations: it asks, and receives every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import RevocationNotice, RevocationQuery
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.seal import Role
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.enrolment.authority import KeepRevocations, RevocationsKept
from ramp.protocol.events import Event, MessageReceived
from ramp.protocol.progress import MembershipEnded, RevocationsFollowed
from ramp.protocol.records import Record
from ramp.protocol.timing import earliest

ASK_AGAIN: Final[Duration] = 10 * SECOND
"""Pause before an unanswered question is asked again."""


class RevocationWatch:
    """Follows the revocation list for one agent.

    Args:
        name: the agent.
        office: name of the enrolment office.
        pause: between two questions.
        number: of the present list; 0 without a list.
        expires_at: expiry of that list.
    """

    def __init__(self, name: str, *, office: str, pause: Duration, number: int = 0, expires_at: Instant = 0) -> None:
        self.name = name
        self.deadline: Instant | None = None
        self._office = office
        self._pause = pause
        self._number = number
        self._expires_at = expires_at
        self._ask_at: Instant = 0
        self._asked = 0
        self._told_expired = False

    def start(self, now: Instant) -> list[Effect]:
        """Ask at once, as revocations may have been missed."""
        return [*self._ask(now), *self._look(now)]

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        return self.start(now)

    def tick(self, now: Instant) -> list[Effect]:
        """Ask again; report an expired list."""
        return [*(self._ask(now) if now >= self._ask_at else []), *self._look(now)]

    def clock_set(self, by: Duration) -> None:
        self._ask_at += by
        self._arm()

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a list, or the result of storing it.

        Raises:
            RemoteProtocolError: if a message is not for a follower, or not sealed by the office.
        """
        match event:
            case MessageReceived(message):
                return self._on_message(message, now)
            case RevocationsKept(number, expires_at, problem):
                return self._on_kept(number, expires_at, problem, now)
        return []

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        notice = message.content
        if not isinstance(notice, RevocationNotice):
            raise RemoteProtocolError(f"{type(notice).__name__} is not a message for a follower of revocations")
        said_by(message, self._office, Role.ENROLMENT)
        self._ask_at = now + self._pause
        self._arm()
        effects: list[Effect] = []
        if notice.revocations and notice.number > self._number:
            effects.append(KeepRevocations(notice.revocations))
        if notice.reason:
            effects.append(Report(MembershipEnded(notice.reason)))
        return effects

    def _on_kept(self, number: int, expires_at: Instant, problem: str, now: Instant) -> list[Effect]:
        if problem:
            return [Report(RevocationsFollowed(0, problem))]
        self._number, self._expires_at, self._told_expired = number, expires_at, False
        return [Report(RevocationsFollowed(number, "")), *self._look(now)]

    def _ask(self, now: Instant) -> list[Effect]:
        self._asked += 1
        self._ask_at = now + min(self._pause, ASK_AGAIN)
        self._arm()
        query = RevocationQuery(f"revocations-{self._asked}", self._number)
        return [Send(Message(Performative.QUERY_REF, self.name, self._office, query.query_id, query))]

    def _look(self, now: Instant) -> list[Effect]:
        """Report once that the list has expired; its revocations stay in force."""
        self._arm()
        if not self._number or now <= self._expires_at or self._told_expired:
            return []
        self._told_expired = True
        self._arm()
        return [Report(RevocationsFollowed(self._number, "the list has expired and no newer one has arrived"))]

    def _arm(self) -> None:
        ends = self._expires_at + 1 if self._number and not self._told_expired else None
        self.deadline = earliest(self._ask_at, ends)
