"""Asking the directory who offers a service, page by page, until all names are there (FIPA's directory facilitator)."""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.contents import DirectoryListing, DirectoryQuery
from ramp.model.instant import Duration, Instant
from ramp.protocol.directory.directories import Directories
from ramp.protocol.directory.listing_pages import ListingPages
from ramp.protocol.effects import Effect, Send
from ramp.protocol.timing import Pace, Retry


class Discovery:
    """One search.

    Args:
        conversation_id: of what it is for.
        asking: name of the agent that asks.
        directories: those that may be asked; where one is silent, the next one is.
        service: what is looked for.
        pace: of the asking agent.

    Attributes:
        limit: until when to wait, or None when it is over.
        is_empty: whether the directory has said that there is nobody; it may be asked too early.
    """

    def __init__(
        self, conversation_id: str, *, asking: str, directories: Directories, service: str, pace: Pace
    ) -> None:
        self.limit: Instant | None = None
        self.is_empty = False
        self._conversation_id = conversation_id
        self._asking = asking
        self._directories = directories
        self._asked = directories.preferred
        self._service = service
        self._timing = pace.timing
        self._retry = Retry(pace)
        self._pages = ListingPages()
        self._begun: Instant = 0

    @property
    def due(self) -> Instant | None:
        """When to ask again."""
        return self._retry.due

    @property
    def names(self) -> tuple[str, ...]:
        """Who offers the service, as far as is known."""
        return self._pages.names

    @property
    def is_complete(self) -> bool:
        """Whether every name is known."""
        return bool(self._pages.names) and self._pages.complete

    def start(self, now: Instant) -> list[Effect]:
        """Ask for the first page."""
        self._begun = now
        self.limit = now + self._timing.discovery_limit
        return self._ask(now)

    def on_listing(self, listing: DirectoryListing, now: Instant) -> list[Effect]:
        """Take a page, and ask for the next one if there is more; a doubled one is harmless."""
        if not listing.names and not listing.more and not self._pages.names:
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
        """Ask again if it is time."""
        if not self._retry.is_due(now):
            return []
        self._retry.again(now)
        self._asked = self._directories.pass_over(self._asked)
        return [self._query()]

    def end(self) -> None:
        """Wait for nothing more."""
        self.limit = None
        self._retry.stop()

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        self._retry.clock_set(by)
        self._begun += by
        if self.limit is not None:
            self.limit += by

    def _ask(self, now: Instant) -> list[Effect]:
        self._retry.begin(now)
        self._asked = self._directories.preferred
        return [self._query()]

    def _query(self) -> Send:
        query = DirectoryQuery(self._conversation_id, self._service, self._pages.after)
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
