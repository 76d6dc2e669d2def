"""Who offers one service: names in alphabetical order, and what their machines are."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Final

from ramp.model.contents import UnfitAgent
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.terms_index import TermsIndex

FEW: Final = 16
"""Where fewer than one in so many is looked for, those are gathered and sorted; else the names are walked in order."""


class Listed:
    """Who is listed under one service.

    Attributes:
        names: theirs, in alphabetical order.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index = TermsIndex()

    def add(self, name: str, terms: StaticTerms | None) -> None:
        """List somebody who is not listed yet."""
        insort(self.names, name)
        self._index.put(name, terms)

    def state(self, name: str, terms: StaticTerms | None) -> None:
        """Somebody who is listed states terms, perhaps others than before."""
        self._index.put(name, terms)

    def remove(self, name: str) -> None:
        """Strike out somebody who is listed."""
        del self.names[bisect_right(self.names, name) - 1]
        self._index.remove(name)

    def page(self, after: str, most: int) -> tuple[tuple[str, ...], bool]:
        """The first names behind one, and whether others follow.

        Args:
            after: the name; empty for the first page.
            most: so many names.
        """
        first = bisect_right(self.names, after)
        names = tuple(self.names[first : first + most])
        return names, first + len(names) < len(self.names)

    def page_by_need(
        self, needs: tuple[StaticNeeds, ...], after: str, most: int, most_unfit: int
    ) -> tuple[tuple[str, ...], bool, tuple[UnfitAgent, ...]]:
        """The first names behind one of those who could serve some of the needs, or state no terms.

        Args:
            needs: at least one.
            after: the name; empty for the first page.
            most: so many names.
            most_unfit: so many of the others, on the first page only.

        Returns:
            The names, whether others follow, and the first of those who could serve nothing, with their terms.
        """
        fit, unfit = self._index.meeting(needs)
        names, more = self._first(fit, after, most)
        others = () if after else self._first(unfit, "", most_unfit)[0]
        return names, more, tuple(UnfitAgent(name, (self._index.terms(name),)) for name in others)

    def _first(self, chosen: int, after: str, most: int) -> tuple[tuple[str, ...], bool]:
        """The first of some agents behind a name, and whether others follow."""
        if FEW * chosen.bit_count() < len(self.names):
            found = sorted(name for name in self._index.names(chosen) if name > after)
            return tuple(found[:most]), len(found) > most
        bits = chosen.to_bytes((chosen.bit_length() + 7) // 8, "little")
        names: list[str] = []
        for position in range(bisect_right(self.names, after), len(self.names)):
            name = self.names[position]
            place = self._index.place(name)
            if place < 8 * len(bits) and bits[place >> 3] >> (place & 7) & 1:
                if len(names) == most:
                    return tuple(names), True
                names.append(name)
        return tuple(names), False
