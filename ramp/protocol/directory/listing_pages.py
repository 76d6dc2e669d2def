"""Putting a directory's listing together from its pages."""

from __future__ import annotations

from ramp.model.contents import DirectoryListing
from ramp.model.slot import StaticTerms

PAGES_MAX = 256
"""Pages taken from one directory; at 500 names a page far more than a market has."""


class ListingPages:
    """The pages of one listing, in order.

    Attributes:
        after: the last name so far, behind which the next page begins.
        complete: whether the last page is in.
        unfit: who could serve nothing of what was asked for, with his terms; as far as that was told.
    """

    def __init__(self) -> None:
        self.after = ""
        self.complete = False
        self.unfit: dict[str, StaticTerms] = {}
        self._names: list[str] = []
        self._pages = 0

    @property
    def names(self) -> tuple[str, ...]:
        """All names so far, in order."""
        return tuple(self._names)

    def add(self, listing: DirectoryListing) -> bool:
        """Take a page; False for a copy of one that is in, or of another listing."""
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
