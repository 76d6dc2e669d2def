"""The agents that offer one service, in alphabetical order, with their machines' terms."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Final

from ramp.model.contents import UnfitAgent
from ramp.model.machine_terms import TERMS, StaticNeeds
from ramp.model.slot import StaticTerms

_LEAST: Final = ("cores", "cores_per_node", "nodes", *(term.name for term in TERMS if term.measure))
_EVERYBODY_HAS: Final = {"cores": 1, "cores_per_node": 1, "nodes": 0}
_EXACT: Final = tuple(term.name for term in TERMS if not term.measure)

ROW_BYTES: Final = 1_024
"""Growth of rows in bytes; each byte covers eight machines."""


class _Property:
    """The values of one property by place; 0 if none is stated."""

    def __init__(self) -> None:
        self._rows: list[bytearray] = []
        self._values: list[int] = []

    def put(self, place: int, value: int) -> None:
        if place == len(self._values):
            self._values.append(0)
        changed = self._values[place] ^ value
        self._values[place] = value
        byte, bit = place >> 3, 1 << (place & 7)
        while changed:
            digit = changed.bit_length() - 1
            changed ^= 1 << digit
            while digit >= len(self._rows):
                self._rows.append(bytearray())
            row = self._rows[digit]
            if byte >= len(row):
                row.extend(bytes(byte + ROW_BYTES - len(row)))
            row[byte] ^= bit

    def equal(self, value: int, among: int) -> int:
        return self._compared(value, among)[1]

    def at_least(self, value: int, among: int) -> int:
        more, equal = self._compared(value, among)
        return more | equal

    def _compared(self, value: int, among: int) -> tuple[int, int]:
        if value.bit_length() > len(self._rows):
            return 0, 0
        more, equal = 0, among
        for digit in range(len(self._rows) - 1, -1, -1):
            row = int.from_bytes(self._rows[digit], "little")
            if value >> digit & 1:
                equal &= row
            else:
                more |= equal & row
                equal &= ~row
        return more, equal


class TermsIndex:
    """The machines of a directory by their static terms; finds matches without a look at each machine.

    It is bit-sliced (P. O'Neil and D. Quass, "Improved query performance with variant indexes", SIGMOD 1997): every
    machine has a place, and every property has one row of bits over all places for each binary digit of its values. A
    comparison with a value then takes one or two operations on whole rows for each digit. So a query costs in
    proportion to the digits, with a constant of one bit a machine, and an update touches one bit in each row that
    differs. Sets of machines are integers with a bit for each place.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._terms: dict[str, StaticTerms] = {}
        self._listed = _Property()
        self._torus = _Property()
        self._least = {name: _Property() for name in _LEAST}
        self._exact = {name: _Property() for name in _EXACT}
        self._words: dict[str, tuple[int, int]] = {}  # word -> (number, uses)
        self._unused: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def put(self, name: str, terms: StaticTerms | None) -> None:
        """Add a machine or replace its terms; a machine without terms may have any."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self._free.pop() if self._free else len(self._names)
            if place == len(self._names):
                self._names.append(name)
            self._names[place] = name
        elif self._terms.get(name) == terms:
            return
        self._forget_terms(name)
        if terms is not None:
            self._terms[name] = terms
        self._note(place, terms, 1)

    def remove(self, name: str) -> None:
        place = self._places.pop(name)
        self._forget_terms(name)
        self._note(place, None, 0)
        self._free.append(place)

    def terms(self, name: str) -> StaticTerms:
        """Return a machine's terms; `KeyError` if it states none, or is not here."""
        return self._terms[name]

    def meeting(self, needs: tuple[StaticNeeds, ...]) -> tuple[int, int]:
        """Return the sets of machines that can serve some of the needs (at least one), or none of them.

        Machines without terms are in the first set.
        """
        everybody = self._listed.at_least(1, -1)
        stating = self._listed.equal(2, everybody)
        met = everybody & ~stating
        for need in needs:
            met |= self._meeting(need, stating & ~met)
        return met, everybody & ~met

    def names(self, places: int) -> Iterator[str]:
        """Yield the names of a set, in any order."""
        for number, byte in enumerate(places.to_bytes((places.bit_length() + 7) // 8, "little")):
            left = byte
            while left:
                yield self._names[8 * number + (left & -left).bit_length() - 1]
                left &= left - 1

    def place(self, name: str) -> int:
        """Return the place of a machine's bit."""
        return self._places[name]

    def _meeting(self, need: StaticNeeds, among: int) -> int:
        if need.torus:
            among = self._torus.equal(1, among)
        for name, property_ in self._exact.items():
            wanted = getattr(need, name)
            if wanted is not None:
                among = property_.equal(self._words[wanted][0], among) if wanted in self._words else 0
        for name, property_ in self._least.items():
            least = getattr(need, name)
            if least is not None and least > _EVERYBODY_HAS.get(name, -1):
                among = property_.at_least(least + 1, among)
        return among

    def _note(self, place: int, terms: StaticTerms | None, listed: int) -> None:
        """Write a machine's terms into all rows; `listed` is 0 for a removed one."""
        self._listed.put(place, listed if terms is None else 2)
        self._torus.put(place, int(terms is not None and terms.torus))
        for name, property_ in self._exact.items():
            word = None if terms is None else getattr(terms, name)
            property_.put(place, 0 if word is None else self._number(word))
        for name, property_ in self._least.items():
            value = None if terms is None else _value(terms, name)
            property_.put(place, 0 if value is None else value + 1)

    def _number(self, word: str) -> int:
        """Return the number of a word, counting one more use."""
        number, times = self._words.get(word) or (self._unused.pop() if self._unused else len(self._words) + 1, 0)
        self._words[word] = number, times + 1
        return number

    def _forget_terms(self, name: str) -> None:
        terms = self._terms.pop(name, None)
        for each in _EXACT if terms is not None else ():
            word = getattr(terms, each)
            if word is not None:
                number, times = self._words.pop(word)
                if times > 1:
                    self._words[word] = number, times - 1
                else:
                    self._unused.append(number)


def _value(terms: StaticTerms, name: str) -> int | None:
    value: int | None = terms.cores // terms.cores_per_node if name == "nodes" else getattr(terms, name)
    return value


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
