"""Asking the directory who offers a service, page by page, until all names are there (FIPA's directory facilitator)."""

from __future__ import annotations

from collections.abc import Mapping

from ramp.model.acl import Message, Performative
from ramp.model.contents import DirectoryListing, DirectoryQuery
from ramp.model.instant import Duration, Instant
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.slot import StaticTerms
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
        needs: only who could serve some of them is looked for; empty for everybody.

    Attributes:
        limit: until when to wait, or None when it is over.
        is_empty: whether the directory has said that there is nobody; it may be asked too early.
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
        """When to ask again."""
        return self._retry.due

    @property
    def names(self) -> tuple[str, ...]:
        """Who offers the service, as far as is known."""
        return self._pages.names

    @property
    def unfit(self) -> Mapping[str, StaticTerms]:
        """Who offers the service and could serve nothing of what is needed, with his terms."""
        return self._pages.unfit

    @property
    def is_complete(self) -> bool:
        """Whether every name is known."""
        return bool(self._pages.names or self._pages.unfit) and self._pages.complete

    def start(self, now: Instant) -> list[Effect]:
        """Ask for the first page."""
        self._begun = now
        self.limit = now + self._timing.discovery_limit
        return self._ask(now)

    def on_listing(self, listing: DirectoryListing, now: Instant) -> list[Effect]:
        """Take a page, and ask for the next one if there is more; a doubled one is harmless."""
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
