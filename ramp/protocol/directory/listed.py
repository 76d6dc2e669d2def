"""The agents that offer one service, in alphabetical order, with their machines' terms."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Final

from ramp.model.contents import UnfitAgent
from ramp.model.machine_terms import StaticNeeds
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.terms_index import TermsIndex

FEW: Final = 16
"""If fewer than one in this many agents match, they are collected and sorted; else all names are walked in order."""


class Listed:
    """The agents listed under one service; `names` are in alphabetical order."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index = TermsIndex()

    def add(self, name: str, terms: StaticTerms | None) -> None:
        insort(self.names, name)
        self._index.put(name, terms)

    def state(self, name: str, terms: StaticTerms | None) -> None:
        """Replace the terms of a listed agent."""
        self._index.put(name, terms)

    def remove(self, name: str) -> None:
        del self.names[bisect_right(self.names, name) - 1]
        self._index.remove(name)

    def page(self, after: str, most: int) -> tuple[tuple[str, ...], bool]:
        """Return up to `most` names after a name (empty for the first page), and whether more follow."""
        first = bisect_right(self.names, after)
        names = tuple(self.names[first : first + most])
        return names, first + len(names) < len(self.names)

    def page_by_need(
        self, needs: tuple[StaticNeeds, ...], after: str, most: int, most_unfit: int
    ) -> tuple[tuple[str, ...], bool, tuple[UnfitAgent, ...]]:
        """Return a page of the agents that can serve some of the needs, or state no terms.

        Args:
            needs: at least one.
            after: name before the page; empty for the first page.
            most: maximum number of names.
            most_unfit: maximum number of other agents, on the first page only.

        Returns:
            The names, whether more follow, and other agents with their terms.
        """
        fit, unfit = self._index.meeting(needs)
        names, more = self._first(fit, after, most)
        others = () if after else self._first(unfit, "", most_unfit)[0]
        return names, more, tuple(UnfitAgent(name, (self._index.terms(name),)) for name in others)

    def _first(self, chosen: int, after: str, most: int) -> tuple[tuple[str, ...], bool]:
        """Return the first chosen names after a name, and whether more follow."""
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
