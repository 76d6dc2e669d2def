"""The units of a torus in a machine's snapshot: their occupants over time, and the cables of each.

Pure. The map comes from a plug-in, so each entry is checked; invalid entries are left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import product
from math import prod
from typing import Any, Final

from ramp.client.machine_state import MachineState

UNITS_MAX: Final = 4096
"""Maximum number of units to draw; a browser rotates this many boxes smoothly."""

CABLES_MAX: Final = 2000
"""Maximum number of cables to draw for one job."""

DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Digits of coordinates in Slurm's names of midplanes (`bgl[000x133]`)."""

SLICE_GAP: Final = 1.5
"""Gap between two slices of a machine with more than three dimensions; neighbours are 1 apart."""

_HOSTLIST: Final = re.compile(r"[a-z0-9._-]*?(?:\[([0-9A-Zx,]+)\]|([0-9A-Z]+))")

Place = tuple[int, ...]
"""Coordinates of a midplane or node."""

Point = tuple[float, float, float]
"""Position in the picture; neighbours are 1 apart."""


class Kind(StrEnum):
    """Type of an occupation: a job of the machine's own users, sold by the market, or held by it."""

    JOB = "job"
    SOLD = "sold"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Occupant:
    """A job or reservation that occupies units of a machine.

    Attributes:
        name: of the job or reservation; unique within a map.
        kind: whose it is.
        places: its units.
        connection: of each dimension, `mesh` or `torus`; empty where the machine has none to choose.
        cables: from switch to switch along a dimension: its number, and both coordinates in it.
        start: when it begins or began, None where the snapshot does not say.
        end: when it is expected to end, None where the snapshot does not say.
    """

    name: str
    kind: Kind
    places: tuple[Place, ...]
    connection: tuple[str, ...]
    cables: tuple[tuple[int, int, int], ...]
    start: datetime | None
    end: datetime | None

    def has_at(self, moment: datetime) -> bool:
        """Whether it occupies its units at a moment, which is not before the snapshot."""
        return (self.start is None or self.start <= moment) and not self.is_over(moment)

    def is_over(self, moment: datetime) -> bool:
        """Whether it ends at or before a moment."""
        return self.end is not None and self.end <= moment


@dataclass(frozen=True, slots=True)
class TorusMap:
    """A machine whose units have coordinates.

    Attributes:
        extents: units along each dimension; three at least, as machines of fewer are drawn one unit deep.
        dimensions: how many the machine itself has.
        occupants: running jobs, then what the market has.
        left_out: number of invalid entries.
    """

    extents: tuple[int, ...]
    dimensions: int
    occupants: tuple[Occupant, ...]
    left_out: int

    @property
    def places(self) -> Iterator[Place]:
        """Coordinates of every unit."""
        return product(*map(range, self.extents))

    @property
    def units(self) -> int:
        return prod(self.extents)

    @property
    def slices(self) -> tuple[Place, ...]:
        """Leading coordinates of each three-dimensional slice; one empty tuple for a 3D machine."""
        return tuple(product(*map(range, self.extents[:-3])))

    @property
    def size(self) -> Point:
        """Extents of the picture; neighbours are 1 apart."""
        x, y, z = self.extents[-3:]
        slices = prod(self.extents[:-3])
        return slices * x + (slices - 1) * SLICE_GAP, float(y), float(z)

    def point(self, place: Sequence[int]) -> Point:
        """Return the position of a unit in the picture; slices are side by side along the first axis."""
        number = 0
        for extent, coordinate in zip(self.extents[:-3], place[:-3], strict=True):
            number = number * extent + coordinate
        x, y, z = place[-3:]
        return x + number * (self.extents[-3] + SLICE_GAP), float(y), float(z)

    def occupied(self, moment: datetime) -> dict[Place, Occupant]:
        """Return the occupant of each unit at a moment; a reservation of the market precedes a job."""
        return {place: each for each in self.occupants if each.has_at(moment) for place in each.places}

    def booked(self, moment: datetime) -> dict[Place, Occupant]:
        """Return the units that the market has sold or holds at a moment or later."""
        found: dict[Place, Occupant] = {}
        for each in self.occupants:
            if each.kind is not Kind.JOB and not each.is_over(moment):
                for place in each.places:
                    found.setdefault(place, each)
        return found

    def wires(self, occupant: Occupant) -> tuple[tuple[Point, Point], ...]:
        """Return the ends of at most `CABLES_MAX` cables of an occupant, as positions in the picture."""
        found = []
        spans = [sorted({place[axis] for place in occupant.places}) for axis in range(len(self.extents))]
        for dimension, source, target in occupant.cables:
            others = [[0] if axis == dimension else span for axis, span in enumerate(spans)]
            for place in product(*others):
                ends = [(*place[:dimension], at, *place[dimension + 1 :]) for at in (source, target)]
                found.append((self.point(ends[0]), self.point(ends[1])))
                if len(found) == CABLES_MAX:
                    return tuple(found)
        return tuple(found)


def torus_map(state: MachineState) -> TorusMap | None:
    """Return the map in a machine's snapshot; None for a flat machine.

    Raises:
        ValueError: if the map has no extents, or too many units to draw.
    """
    told = state.snapshot.get("map")
    if told is None:
        return None
    if not isinstance(told, Mapping):
        raise ValueError("the map is not a JSON object")  # noqa: TRY004 - it is another party's data
    extents, cores = extents_of(told.get("extents")), told.get("cores_a_unit")
    if type(cores) is not int or cores < 1:
        raise ValueError(f"the map states {cores} cores per unit, expected at least 1")
    reader = MapReader(extents, cables_of(told.get("cables")))
    runs = {str(each.job): (each.start, each.end) for each in state.running}
    slots = {each.reservation_id: (each.start, each.end) for each in state.reservations}
    for entry in _entries(told.get("jobs")):
        reader.read(entry, "job_number", Kind.JOB, runs)
    for entry in _entries(told.get("booked")):
        kind = Kind.SOLD if isinstance(entry, Mapping) and entry.get("firm") is True else Kind.HELD
        reader.read(entry, "name", kind, slots)
    return TorusMap(reader.padded, len(reader.extents), tuple(reader.found), reader.left_out)


def extents_of(given: object) -> Place:
    """Check the number of units along each dimension.

    Raises:
        ValueError: if the extents are invalid, or too many to draw.
    """
    extents = given if isinstance(given, list) else []
    right = extents and all(type(each) is int and 1 <= each <= len(DIGITS) for each in extents)
    if right and prod(extents) <= UNITS_MAX:
        return tuple(extents)
    raise ValueError(f"the map has the extents {given}; the limits are {UNITS_MAX} units, {len(DIGITS)} along a side")


class MapReader:
    """Reads the entries of a map.

    Args:
        extents: units along each dimension of the machine.
        wiring: of each dimension by name, the two coordinates that cable 0, 1 and so on of its lines joins.

    Attributes:
        padded: the extents, three at least.
        found: who has units, in the order in which they were read.
        left_out: number of invalid entries.
    """

    def __init__(self, extents: Place, wiring: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self.extents = extents
        self.padded = extents + (1,) * (3 - len(extents))
        self.found: list[Occupant] = []
        self.left_out = 0
        self._wiring = wiring
        self._names = list(wiring)

    def read(self, entry: object, key: str, kind: Kind, times: Mapping[str, tuple[datetime, datetime]]) -> None:
        """Read an entry, or count it as invalid."""
        if not isinstance(entry, Mapping):
            self.left_out += 1
            return
        try:
            name = str(entry[key])
            places = self._places(str(entry["nodes"]))
            # a running job of which the list of jobs, which may be cut, does not tell has its units as far as one sees
            start, end = times.get(name, (None, None))
            connection = tuple(str(each) for each in entry.get("connection") or ())
            cables = self._cables(entry.get("links") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            self.left_out += 1
            return
        if kind is not Kind.JOB and name not in times:
            self.left_out += 1  # it is not said when
            return
        self.found.append(Occupant(name, kind, places, connection, cables, start, end))

    def _places(self, hostlist: str) -> tuple[Place, ...]:
        matched = _HOSTLIST.fullmatch(hostlist)
        if matched is None:
            raise ValueError(f"{hostlist!r} is no list of midplanes or nodes")
        found: dict[Place, None] = {}
        named = 0
        listed = matched[1].split(",") if matched[1] else [matched[2][-len(self.extents) :]]
        for item in listed:
            low, _, high = item.partition("x")
            first, last = self._place(low), self._place(high or low)
            named += prod(b - a + 1 for a, b in zip(first, last, strict=True) if b >= a)
            if named > UNITS_MAX:
                raise ValueError("names more units than a machine has")
            for place in product(*(range(a, b + 1) for a, b in zip(first, last, strict=True))):
                found[place + (0,) * (len(self.padded) - len(place))] = None
        return tuple(found)

    def _place(self, digits: str) -> Place:
        place = tuple(DIGITS.index(digit) for digit in digits)
        if len(place) != len(self.extents) or any(at >= most for at, most in zip(place, self.extents, strict=True)):
            raise ValueError(f"{digits!r} is no unit of a machine of {self.extents}")
        return place

    def _cables(self, links: Mapping[str, Any]) -> tuple[tuple[int, int, int], ...]:
        found = []
        for name, labels in links.items():
            if name not in self._wiring:
                continue
            dimension, wiring = self._names.index(name), self._wiring[name]
            for label in labels:
                source, target = wiring[label] if type(label) is int and 0 <= label < len(wiring) else (-1, -1)
                if not (
                    dimension < len(self.extents) and all(0 <= at < self.extents[dimension] for at in (source, target))
                ):
                    raise ValueError(f"no cable {label} along {name}")
                found.append((dimension, source, target))
        return tuple(found)


def _entries(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def cables_of(value: object) -> dict[str, list[tuple[int, int]]]:
    """Return the wiring of the lines of each dimension, in their order; empty if it is invalid."""
    if not isinstance(value, Mapping):
        return {}
    try:
        wiring = {str(name): [(int(source), int(target)) for source, target in ends] for name, ends in value.items()}
    except (TypeError, ValueError):
        return {}
    return wiring
