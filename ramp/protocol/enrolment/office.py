"""The enrolment office: answers requests for certificates, and distributes the revocation list.

The office only limits the number of requests; the authority decides about certificates. A changed list goes to all
enrolled parties at once, and to any party that asks for a newer one.
"""

from __future__ import annotations

from typing import Final

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.protocol.conversations import Alarm
from ramp.protocol.effects import Effect, Report, Send, reply
from ramp.protocol.enrolment.authority import JudgeRequest, ReadRevocations, RequestJudged, RevocationsRead
from ramp.protocol.events import Event
from ramp.protocol.party import Party
from ramp.protocol.progress import EnrolmentAnswered

LOOK: Final[Duration] = 2 * SECOND
"""Pause between two reads of the revocation list, which other processes may change."""

QUERIES_PER_ATTEMPT: Final = 10
"""Ratio of permitted revocation queries to permitted certificate requests."""


class Attempts:
    """Counts attempts in minutes that begin with the first one.

    A site may send under any number of names. The limit over all senders therefore bounds the authority's work for
    strangers, and the number of names counted at a time.
    """

    def __init__(self, per_sender: int, in_all: int) -> None:
        self._per_sender = per_sender
        self._in_all = in_all
        self._begun: Instant | None = None
        self._total = 0
        self._by_sender: dict[str, int] = {}

    def allowed(self, sender: str, now: Instant) -> bool:
        """Count an attempt within both limits and return True; else return False."""
        if self._begun is None or now - self._begun >= MINUTE:
            self._begun, self._total = now, 0
            self._by_sender.clear()
        count = self._by_sender.get(sender, 0)
        if count >= self._per_sender or self._total >= self._in_all:
            return False
        self._by_sender[sender] = count + 1
        self._total += 1
        return True

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: the minute lasts as long as before."""
        if self._begun is not None:
            self._begun += by


class EnrolmentOffice(Party):
    """Everything the enrolment office does; `per_sender` and `in_all` are maximum requests in a minute."""

    def __init__(self, name: str, *, per_sender: int, in_all: int) -> None:
        super().__init__(name)
        self._next_look = Alarm()
        self._attempts = Attempts(per_sender, in_all)
        self._queries = Attempts(QUERIES_PER_ATTEMPT * per_sender, QUERIES_PER_ATTEMPT * in_all)
        self.task(self._next_look, self.start)
        self.follow(self._attempts)
        self.follow(self._queries)
        self._list: RevocationsRead | None = None

    def start(self, now: Instant) -> list[Effect]:
        """Read the revocation list, now and after each pause."""
        self._next_look.deadline = now + LOOK
        return [ReadRevocations()]

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a request, a question or the authority's answer.

        Raises:
            RemoteProtocolError: if a message is not for an enrolment office.
        """
        match event:
            case Message():
                return self._on_message(event, now)
            case RequestJudged(message, answer):
                return self._on_judged(message, answer)
            case RevocationsRead():
                return self._on_revocations(event)
        return []

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        match message.content:
            case c.EnrolmentRequest() as request:
                if not self._attempts.allowed(message.sender, now):
                    return []  # a sealed answer costs more than the question, which is repeated
                return [JudgeRequest(message, request)]
            case c.RevocationQuery(query_id, number):
                if self._list is None or not self._list.number or not self._queries.allowed(message.sender, now):
                    return []
                return [reply(message, Performative.INFORM, self._notice(query_id, message.sender, number))]
            case c.NotUnderstood():
                return []
        raise RemoteProtocolError(f"{type(message.content).__name__} is not a message for an enrolment office")

    def _on_judged(self, message: Message, answer: c.Content) -> list[Effect]:
        code, performative = "", Performative.INFORM
        if isinstance(answer, c.RequestRefused):
            code, performative = answer.code, Performative.REFUSE
        assert isinstance(message.content, c.EnrolmentRequest), "only these are judged"
        told = EnrolmentAnswered(message.sender, message.content.invitation_id, code)
        return [Report(told), reply(message, performative, answer)]

    def _on_revocations(self, read: RevocationsRead) -> list[Effect]:
        before, self._list = self._list, read
        if before is None or read.number <= before.number:
            return []  # after a start all parties ask by themselves
        return [
            Send(
                Message(
                    Performative.INFORM,
                    self.name,
                    member,
                    f"revocations-{read.number}",
                    self._notice(str(read.number), member, before.number),
                )
            )
            for member in read.members
        ]

    def _notice(self, query_id: str, receiver: str, known: int) -> c.RevocationNotice:
        assert self._list is not None, "there is a list"
        pem = self._list.revocations if known < self._list.number else ""
        return c.RevocationNotice(query_id, self._list.number, pem, self._list.reasons.get(receiver, ""))
