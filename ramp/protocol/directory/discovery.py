"""Asking a directory for the sellers of a service, page by page (FIPA's directory facilitator).

Every resource registers with all directories of a market, so each directory knows all of them. Directories do not know
each other. So the permanent loss of one costs each asking party one pause, once, and one that lies about numbers or
names is believed only for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ramp.model.acl import Message, Performative
from ramp.model.contents import DirectoryListing, DirectoryQuery
from ramp.model.instant import Duration, Instant
from ramp.model.machine_terms import StaticNeeds
from ramp.model.seal import Role, Seal
from ramp.model.slot import StaticTerms
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Send
from ramp.protocol.timing import Pace, Retry

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

    def add(self, listing: DirectoryListing) -> bool:
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

    def whole(self, last: DirectoryListing) -> DirectoryListing:
        """Return the whole listing as one page."""
        return DirectoryListing(last.query_id, last.service, self.names)


class Discovery:
    """One search.

    Args:
        conversation_id: of the request.
        asking: name of the asking agent.
        directories: to ask, the next one after a silence.
        service: to find.
        pace: of the asking agent.
        needs: find only agents that can serve some of these; empty for all.

    Attributes:
        limit: until when to wait, or None after the end.
        is_empty: whether the directory listed no agent; a starting market fills later.
    """

    def __init__(
        self,
        conversation_id: str,
        *,
        asking: str,
        directories: Directories,
        service: str,
        pace: Pace,
        needs: tuple[StaticNeeds, ...] = (),
    ) -> None:
        self.limit: Instant | None = None
        self.is_empty = False
        self._conversation_id = conversation_id
        self._asking = asking
        self._directories = directories
        self._asked = directories.preferred
        self._service = service
        self._needs = needs
        self._timing = pace.timing
        self._retry = Retry(pace)
        self._pages = ListingPages()
        self._begun: Instant = 0

    @property
    def due(self) -> Instant | None:
        return self._retry.due

    @property
    def names(self) -> tuple[str, ...]:
        return self._pages.names

    @property
    def unfit(self) -> Mapping[str, StaticTerms]:
        """The agents that offer the service and can serve none of the needs, with their terms."""
        return self._pages.unfit

    @property
    def is_complete(self) -> bool:
        return bool(self._pages.names or self._pages.unfit) and self._pages.complete

    def start(self, now: Instant) -> list[Effect]:
        self._begun = now
        self.limit = now + self._timing.discovery_limit
        return self._ask(now)

    def on_listing(self, listing: DirectoryListing, now: Instant) -> list[Effect]:
        """Take a page, and ask for the next one; copies change nothing."""
        if not listing.names and not listing.more and not listing.unfit and not self._pages.names:
            self.is_empty = True
            self.limit = self._begun + self._timing.empty_limit
            return []
        if not self._pages.add(listing):
            return []
        self._retry.answered(now)
        if not self._pages.complete:
            return self._ask(now)
        self.end()
        return []

    def tick(self, now: Instant) -> list[Effect]:
        if not self._retry.is_due(now):
            return []
        self._retry.again(now)
        self._asked = self._directories.pass_over(self._asked)
        return [self._query()]

    def end(self) -> None:
        self.limit = None
        self._retry.stop()

    def clock_set(self, by: Duration) -> None:
        self._retry.clock_set(by)
        self._begun += by
        if self.limit is not None:
            self.limit += by

    def _ask(self, now: Instant) -> list[Effect]:
        self._retry.begin(now)
        self._asked = self._directories.preferred
        return [self._query()]

    def _query(self) -> Send:
        query = DirectoryQuery(self._conversation_id, self._service, self._pages.after, self._needs)
        return Send(
            Message(
                Performative.QUERY_REF,
                self._asking,
                self._asked,
                self._conversation_id,
                query,
                reply_with=f"{self._conversation_id}/directory",
                reply_by=self._timing.discovery_limit,
            )
        )
