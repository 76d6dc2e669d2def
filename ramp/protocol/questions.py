"""An owner's questions to bank, resource or directory, repeated until answered or given up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import AccountQuery, AccountQueryRefused, AccountStatement, Content, NotUnderstood
from ramp.model.contents.accounts import PAYMENT, REPLAYED
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role
from ramp.protocol.belief import said_by
from ramp.protocol.directory.discovery import Directories
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.events import AccountAsked
from ramp.protocol.progress import Answer, QueryAnswered
from ramp.protocol.timing import Pace, Retry, earliest

NONCE_MARK = "#"
"""Separates a query id from its try; each try needs a new nonce, as an answer may be lost."""


@dataclass(slots=True)
class _Question:
    """One open question.

    Attributes:
        send: the last try.
        ask: makes the content of the n-th try, from 1: each try needs a new nonce, as an answer may be lost.
        limit: when to give up.
        role: in which the answer must be sealed; None without a seal.
        directories: any of which may answer; None if only one party may.
    """

    send: Send
    ask: Callable[[int], Content]
    retry: Retry
    limit: Instant
    role: Role | None
    directories: Directories | None = None
    tries: int = 1


class Questions:
    """The open questions of one party."""

    def __init__(self, name: str, pace: Pace) -> None:
        self._name = name
        self._pace = pace
        self._open: dict[str, _Question] = {}

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._open

    @property
    def deadline(self) -> Instant | None:
        return earliest(*(earliest(each.retry.due, each.limit) for each in self._open.values()))

    def ask(
        self,
        query_id: str,
        receiver: str | Directories,
        ask: Callable[[int], Content],
        now: Instant,
        *,
        role: Role | None,
        performative: Performative = Performative.QUERY_REF,
    ) -> list[Effect]:
        """Ask a question.

        Args:
            query_id: names the question and its conversation.
            receiver: one party, or directories, of which another is asked after a silence.
            ask: makes the content of the n-th try.
            now: the present.
            role: in which the answer must be sealed; None without a seal.
            performative: REQUEST for an order.
        """
        limit = self._pace.timing.query_limit
        directories = receiver if isinstance(receiver, Directories) else None
        name = receiver.preferred if isinstance(receiver, Directories) else receiver
        send = Send(Message(performative, self._name, name, query_id, ask(1), reply_with=query_id, reply_by=limit))
        retry = Retry(self._pace)
        retry.begin(now)
        self._open[query_id] = _Question(send, ask, retry, now + limit, role, directories)
        return [send]

    def ask_account(self, asked: AccountAsked, bank: str, now: Instant) -> list[Effect]:
        """Ask the bank for the own account."""

        def query(tries: int) -> Content:
            nonce = asked.query_id if tries == 1 else f"{asked.query_id}{NONCE_MARK}{tries}"
            return AccountQuery(nonce, self._name, asked.since, asked.until)

        return self.ask(asked.query_id, bank, query, now, role=Role.BANK)

    def account_answered(
        self, message: Message, answer: AccountStatement | AccountQueryRefused, now: Instant
    ) -> list[Effect]:
        """Report the bank's answer to `ask_account`; raises as `answered`."""
        if isinstance(answer, AccountQueryRefused) and answer.code == REPLAYED:
            return []  # the network copied our query; the real answer follows
        return self.answered(answer.nonce.partition(NONCE_MARK)[0], message, answer, now)

    def answered(self, query_id: str, message: Message, answer: Answer, now: Instant) -> list[Effect]:
        """Report the answer to an open question; ignore an answer to any other.

        Raises:
            RemoteProtocolError: if it is from another party, or lacks the required seal.
        """
        question = self._open.get(query_id)
        if question is None:
            return []
        self.check(query_id, message)
        question.retry.answered(now)
        del self._open[query_id]
        return [Report(QueryAnswered(query_id, answer))]

    def not_understood(self, message: Message, answer: NotUnderstood) -> list[Effect]:
        """Report that the party asked cannot read an open question, or that it cannot be sent."""
        question = self._open.get(message.in_reply_to)
        if question is None or message.sender not in (question.send.message.receiver, self._name):
            return []
        del self._open[message.in_reply_to]
        return [Report(QueryAnswered(message.in_reply_to, answer))]

    def check(self, query_id: str, message: Message) -> None:
        """Check the sender and, where required, the seal of an answer to an open question.

        Raises:
            RemoteProtocolError: if not.
        """
        question = self._open[query_id]
        if question.directories is not None:
            question.directories.said(message)
        elif question.role is not None:
            said_by(message, question.send.message.receiver, question.role)
        elif message.sender != question.send.message.receiver:
            raise RemoteProtocolError(f"{message.sender} may not speak for {question.send.message.receiver}")

    def again(self, query_id: str, now: Instant) -> list[Effect]:
        """Ask for the next part of an answer."""
        question = self._open[query_id]
        question.retry.answered(now)
        question.retry.begin(now)
        return [self._renewed(question)]

    def drop(self, query_id: str) -> list[Effect]:
        """Give up an open question at once."""
        return [Report(QueryAnswered(query_id, None))] if self._open.pop(query_id, None) is not None else []

    def clock_set(self, by: Duration) -> None:
        for question in self._open.values():
            question.retry.clock_set(by)
            question.limit += by

    def tick(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for query_id, question in list(self._open.items()):
            if now >= question.limit:
                del self._open[query_id]
                effects.append(Report(QueryAnswered(query_id, None)))
            elif question.retry.is_due(now):
                question.retry.again(now)
                if question.directories is not None:
                    silent = question.send.message
                    another = question.directories.pass_over(silent.receiver)
                    question.send = Send(replace(silent, receiver=another))
                effects.append(self._renewed(question))
        return effects

    def _renewed(self, question: _Question) -> Send:
        question.tries += 1
        question.send = Send(replace(question.send.message, content=question.ask(question.tries)))
        return question.send


def unknown_agreements(statement: AccountStatement, known: Callable[[str], bool]) -> list[str]:
    """Return the agreements of a statement that were paid, are not wholly refunded, and are not known."""
    left: dict[str, int] = {}
    for line in statement.lines:
        if line.kind == PAYMENT or line.agreement_id in left:
            left[line.agreement_id] = left.get(line.agreement_id, 0) + line.amount
    return [agreement_id for agreement_id, amount in left.items() if amount and not known(agreement_id)]
