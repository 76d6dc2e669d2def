"""An owner's questions to the directories, answered from several pages."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.contents import DirectoryListing, DirectoryQuery
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.directory.discovery import Directories, ListingPages
from ramp.protocol.effects import Effect
from ramp.protocol.questions import Questions


class Listings:
    """The open questions of one owner about the agents of a service."""

    def __init__(self, questions: Questions, directories: Directories) -> None:
        self._questions = questions
        self._directories = directories
        self._pages: dict[str, ListingPages] = {}

    def ask(self, query_id: str, service: str, now: Instant) -> list[Effect]:
        pages = self._pages[query_id] = ListingPages()
        return self._questions.ask(
            query_id,
            self._directories,
            lambda _: DirectoryQuery(query_id, service, pages.after),
            now,
            role=Role.DIRECTORY,
        )

    def answered(self, message: Message, listing: DirectoryListing, now: Instant) -> list[Effect]:
        """Take a page; ask for the next one, or report the whole listing.

        Raises:
            RemoteProtocolError: if no directory sealed it.
        """
        query_id = listing.query_id
        self._questions.check(query_id, message)
        pages = self._pages[query_id]
        if not pages.add(listing):
            return []
        if pages.complete:
            del self._pages[query_id]
            whole = DirectoryListing(query_id, listing.service, pages.names)
            return self._questions.answered(query_id, message, whole, now)
        return self._questions.again(query_id, now)

    def forget(self, query_id: str) -> None:
        self._pages.pop(query_id, None)

    def tick(self) -> None:
        """Forget the pages of questions that are no longer open."""
        self._pages = {query_id: pages for query_id, pages in self._pages.items() if query_id in self._questions}
