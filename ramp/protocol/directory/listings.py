"""What an owner asks of the directories, its answer put together from pages."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.contents import DirectoryListing, DirectoryQuery
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.directory.directories import Directories
from ramp.protocol.directory.listing_pages import ListingPages
from ramp.protocol.effects import Effect
from ramp.protocol.questions import Questions


class Listings:
    """The open questions of one owner about who offers a service.

    Args:
        questions: the owner's open questions, among which these are.
        directories: whom to ask.
    """

    def __init__(self, questions: Questions, directories: Directories) -> None:
        self._questions = questions
        self._directories = directories
        self._pages: dict[str, ListingPages] = {}

    def ask(self, query_id: str, service: str, now: Instant) -> list[Effect]:
        """Ask for the first page."""
        pages = self._pages[query_id] = ListingPages()
        return self._questions.ask(
            query_id,
            self._directories,
            lambda _: DirectoryQuery(query_id, service, pages.after),
            now,
            role=Role.DIRECTORY,
        )

    def answered(self, message: Message, listing: DirectoryListing, now: Instant) -> list[Effect]:
        """Take a page of an open question: ask for the next one, or tell the whole.

        Raises:
            RemoteProtocolError: if it is not a directory's own word.
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
        """Forget what has been given up."""
        self._pages.pop(query_id, None)

    def tick(self) -> None:
        """Forget the pages of questions that are no longer open."""
        self._pages = {query_id: pages for query_id, pages in self._pages.items() if query_id in self._questions}
