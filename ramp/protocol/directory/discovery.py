"""The directories of a market as their askers see them, and the pages of a listing (FIPA's directory facilitator).

Every resource registers with all directories of a market, so each directory knows all of them. Directories do not know
each other. So the permanent loss of one costs each asking party one pause, once, and one that lies about numbers or
names is believed only for itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramp.model.acl import Message
from ramp.model.contents import DirectoryListing
from ramp.model.seal import Role, Seal
from ramp.model.slot import StaticTerms
from ramp.protocol.belief import said_by

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
