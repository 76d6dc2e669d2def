"""Questions to bank, resource or directory, repeated until answered or given up; the directories, and their pages.

Every resource registers with all directories of a market, so each directory knows all of them. Directories do not know
each other. So the permanent loss of one costs each asking party one pause, once, and one that lies about numbers or
names is believed only for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.instant import Duration, Instant
from ramp.model.machine_terms import StaticNeeds
from ramp.model.seal import Role, Seal
from ramp.model.slot import StaticTerms
from ramp.protocol.belief import said_by
from ramp.protocol.conversations import Conversations, Registry
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.events import AccountAsked
from ramp.protocol.progress import Answer, QueryAnswered
from ramp.protocol.timing import Pace, Retried, Retry

PAGES_MAX = 256
"""Maximum pages of one listing; with 500 names each this is more than any market has."""


class Directories:
    """The directories of a market; a party asks the one that answered last, until it is silent.

    Attributes:
        names: of the directories.
        preferred: the one to ask next.
    """

    def __init__(self, names: Sequence[str]) -> None:
        if not names:
            raise ValueError("a market needs at least one directory")
        self.names = tuple(names)
        self.preferred = self.names[0]

    def pass_over(self, silent: str) -> str:
        """Return another directory than a silent one.

        Several conversations may notice the silence; only the first moves the preference on.
        """
        if silent == self.preferred:
            self.preferred = self.names[(self.names.index(silent) + 1) % len(self.names)]
        return self.preferred

    def said(self, message: Message) -> Seal:
        """Return the seal of a message that only a directory may send; late answers of any directory count.

        Raises:
            RemoteProtocolError: if another party sent it, or its seal is missing.
        """
        name = message.sender if message.sender in self.names else self.preferred
        return said_by(message, name, Role.DIRECTORY)


class ListingPages:
    """The pages of one listing, in order.

    Attributes:
        after: last name so far, after which the next page begins.
        complete: whether the last page has arrived.
        unfit: listed agents that can serve no unit of the request, with their terms, as far as sent.
    """

    def __init__(self) -> None:
        self.after = ""
        self.complete = False
        self.unfit: dict[str, StaticTerms] = {}
        self._names: list[str] = []
        self._pages = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def add(self, listing: c.DirectoryListing) -> bool:
        """Take a page; return False for a copy, or a page of another listing."""
        names = listing.names
        if self.complete or (names and names[0] <= self.after) or (listing.more and not names):
            return False
        self._names += names
        self._pages += 1
        self.complete = not listing.more or self._pages >= PAGES_MAX
        if names:
            self.after = names[-1]
        self.unfit |= {each.name: each.terms[0] for each in listing.unfit if each.terms}
        return True

    def whole(self, last: c.DirectoryListing) -> c.DirectoryListing:
        """Return the whole listing as one page."""
        return c.DirectoryListing(last.query_id, last.service, self.names)


class Pages(Protocol):
    """The pages of one answer."""

    @property
    def complete(self) -> bool:
        """Whether the last page has been taken."""
        ...

    def add(self, page: Any) -> bool:
        """Take a page; return False for a copy."""
        ...

    def whole(self, last: Any) -> Answer:
        """Return the whole answer after its last page."""
        ...


class Question(Retried):
    """One open question.

    Args:
        ask: makes the content of the next try; None if all are alike.
        limit: time until it is given up.
        role: in which the answer must be sealed; None without a seal.
        directories: any of which may answer; None if only one party may.
        pages: of an answer that comes in several; None of any other.
        longest: longest pause between two tries; None for the common limit.

    Attributes:
        given_up: whether it was not answered in time.
    """

    def __init__(
        self,
        send: Send,
        ask: Callable[[], c.Content] | None,
        pace: Pace,
        now: Instant,
        *,
        limit: Duration,
        role: Role | None = None,
        directories: Directories | None = None,
        pages: Pages | None = None,
        longest: Duration | None = None,
    ) -> None:
        self.send = send
        self.pages = pages
        self.given_up = False
        self._ask = ask
        self._role = role
        self._directories = directories
        self._retry = Retry(pace, longest)
        self._retry.begin(now, now + limit)

    def on_timer(self, now: Instant) -> list[Effect]:
        """Ask again, or give up; a silent directory is passed over."""
        if self._retry.is_over(now):
            self.given_up = True
            self.stop()
            return []
        self._retry.again(now)
        if self._directories is not None:
            silent = self.send.message
            another = self._directories.pass_over(silent.receiver)
            self.send = Send(replace(silent, receiver=another))
        return [self._renewed()]

    def on_message(self, message: Message, now: Instant) -> None:
        """Check the sender and, where required, the seal of an answer.

        Raises:
            RemoteProtocolError: if it is from another party, or lacks the required seal.
        """
        asked = self.send.message.receiver
        if self._directories is not None:
            self._directories.said(message)
        elif self._role is not None:
            said_by(message, asked, self._role)
        elif message.sender != asked:
            raise RemoteProtocolError(f"{message.sender} may not speak for {asked}")

    def answered(self, now: Instant) -> None:
        self._retry.answered(now)
        self.stop()

    def stop(self) -> None:
        """Wait for no answer any more."""
        self._retry.stop()

    def on_page(self, page: c.DirectoryListing | c.MarketOverview, now: Instant) -> list[Effect]:
        """Take a page of the answer, and ask for the next one unless it is the last; copies change nothing."""
        assert self.pages is not None, "the answer comes in one message"
        if not self.pages.add(page):
            return []
        self._retry.answered(now)
        if self.pages.complete:
            self.stop()
            return []
        self._retry.begin(now, self._retry.limit)
        return [self._renewed()]

    def _renewed(self) -> Send:
        if self._ask is not None:
            self.send = Send(replace(self.send.message, content=self._ask()))
        return self.send


class Search(Question):
    """The search for the sellers of one request.

    Args:
        needs: find only agents that can serve some of these; empty for all.

    Attributes:
        found: so far.
        is_empty: whether a directory listed no agent; a starting market fills later.
    """

    def __init__(
        self,
        request_id: str,
        user: str,
        directories: Directories,
        needs: tuple[StaticNeeds, ...],
        pace: Pace,
        now: Instant,
    ) -> None:
        self.found = found = ListingPages()
        self.is_empty = False
        self._empty_limit = pace.timing.empty_limit
        limit, name = pace.timing.discovery_limit, f"{request_id}/directory"

        def query() -> c.DirectoryQuery:
            return c.DirectoryQuery(request_id, RESOURCE_SERVICE, found.after, needs)

        asked = (Performative.QUERY_REF, user, directories.preferred, request_id, query())
        first = Send(Message(*asked, reply_with=name, reply_by=limit))
        super().__init__(first, query, pace, now, limit=limit, directories=directories, pages=found)

    def on_listing(self, listing: c.DirectoryListing, now: Instant) -> list[Effect]:
        """Take a page; an empty listing is asked for again for a while."""
        if listing.names or listing.more or listing.unfit or self.found.names:
            return self.on_page(listing, now)
        self.is_empty = True
        self._retry.limit = self._retry.begun + self._empty_limit
        return []


class Questions:
    """The open questions of one party."""

    def __init__(self, name: str, pace: Pace, registry: Registry) -> None:
        self._name = name
        self._pace = pace
        self._open: Conversations[Question] = Conversations(registry, followed=self._followed)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._open

    def ask(
        self,
        query_id: str,
        receiver: str | Directories,
        ask: Callable[[], c.Content],
        now: Instant,
        *,
        role: Role | None = None,
        performative: Performative = Performative.QUERY_REF,
        pages: Pages | None = None,
    ) -> list[Effect]:
        """Ask a question.

        Args:
            query_id: names the question and its conversation.
            receiver: one party, or directories, of which another is asked after a silence.
            ask: makes the content of the next try.
            now: the present.
            role: in which the answer must be sealed; None without a seal, and for directories, which check it anyway.
            performative: REQUEST for an order.
            pages: collects an answer that comes in several messages.
        """
        limit = self._pace.timing.query_limit
        directories = receiver if isinstance(receiver, Directories) else None
        name = receiver.preferred if isinstance(receiver, Directories) else receiver
        send = Send(Message(performative, self._name, name, query_id, ask(), reply_with=query_id, reply_by=limit))
        question = Question(send, ask, self._pace, now, limit=limit, role=role, directories=directories, pages=pages)
        self._open.add(query_id, question)
        return self._open.act(query_id, lambda: [send], now)

    def ask_account(self, asked: AccountAsked, bank: str, now: Instant) -> list[Effect]:
        """Ask the bank for the own account."""
        query = c.AccountQuery(asked.query_id, self._name, asked.since, asked.until)
        return self.ask(asked.query_id, bank, lambda: query, now, role=Role.BANK)

    def answered(self, query_id: str, message: Message, answer: Answer, now: Instant) -> list[Effect]:
        """Report the answer to an open question, or ask for its next page; ignore an answer to any other.

        Raises:
            RemoteProtocolError: if it is from another party, or lacks the required seal.
        """
        question = self._open.get(query_id)
        if question is None:
            return []
        question.on_message(message, now)
        pages = question.pages
        if pages is not None and isinstance(answer, c.DirectoryListing | c.MarketOverview):
            effects = self._open.act(query_id, partial(question.on_page, answer, now), now)
            if not pages.complete:
                return effects
            answer = pages.whole(answer)
        question.answered(now)
        self._open.drop(query_id)
        return [Report(QueryAnswered(query_id, answer))]

    def not_understood(self, message: Message, answer: c.NotUnderstood) -> list[Effect]:
        """Report that the party asked cannot read an open question, or that it cannot be sent."""
        query_id = message.in_reply_to
        question = self._open.get(query_id)
        if question is None or message.sender not in (question.send.message.receiver, self._name):
            return []
        self._open.drop(query_id)
        return [Report(QueryAnswered(query_id, answer))]

    def drop(self, query_id: str) -> list[Effect]:
        """Give up an open question at once."""
        return [] if self._open.drop(query_id) is None else [Report(QueryAnswered(query_id, None))]

    def _followed(self, question: Question, effects: list[Effect], now: Instant) -> list[Effect]:
        return [*effects, *self.drop(question.send.message.conversation_id)] if question.given_up else effects


def unknown_agreements(statement: c.AccountStatement, known: Callable[[str], bool]) -> list[str]:
    """Return the agreements of a statement that were paid, are not wholly refunded, and are not known."""
    left: dict[str, int] = {}
    for line in statement.lines:
        if line.kind == c.TransferKind.PAYMENT or line.agreement_id in left:
            left[line.agreement_id] = left.get(line.agreement_id, 0) + line.amount
    return [agreement_id for agreement_id, amount in left.items() if amount and not known(agreement_id)]
