"""The units of a torus in a machine's snapshot: their occupants over time, and the cables of each.

Pure. The map comes from a plug-in, so each entry is checked; invalid entries are left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

Wiring = Mapping[str, Sequence[tuple[int, int]]]
"""Of each dimension by name, the two coordinates that cable 0, 1 and so on of its lines joins."""

Times = Mapping[str, tuple[datetime, datetime]]
"""Start and end of jobs or reservations by name."""


class Kind(StrEnum):
    """Type of an occupation: a job of the machine's own users, sold by the market, or held by it."""

    JOB = "job"
    SOLD = "sold"
    HELD = "held"


Entry = tuple[Any, str, Kind, Times]
"""What a map says of an occupation, the key of its name there, its type, and where its times are found."""


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
    runs = {str(each.job): (each.start, each.end) for each in state.running}
    slots = {each.reservation_id: (each.start, each.end) for each in state.reservations}
    entries: list[Entry] = [(each, "job_number", Kind.JOB, runs) for each in _entries(told.get("jobs"))]
    for each in _entries(told.get("booked")):
        kind = Kind.SOLD if isinstance(each, Mapping) and each.get("firm") is True else Kind.HELD
        entries.append((each, "name", kind, slots))
    return map_of(extents, cables_of(told.get("cables")), entries)


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


def map_of(extents: Place, wiring: Wiring, entries: Iterable[Entry]) -> TorusMap:
    """Return the map of a machine with these extents; invalid entries are left out and counted."""
    found, left_out = [], 0
    for entry in entries:
        try:
            found.append(_occupant(extents, wiring, *entry))
        except (KeyError, TypeError, ValueError, AttributeError):
            left_out += 1
    return TorusMap(_padded(extents, 1), len(extents), tuple(found), left_out)


def _padded(place: Place, value: int) -> Place:
    return place + (value,) * (3 - len(place))


def _occupant(extents: Place, wiring: Wiring, entry: Any, key: str, kind: Kind, times: Times) -> Occupant:
    name = str(entry[key])
    if kind is not Kind.JOB and name not in times:
        raise ValueError(f"it is not said when {name} begins and ends")
    # a running job of which the list of jobs, which may be cut, does not tell has its units as far as one sees
    start, end = times.get(name, (None, None))
    connection = tuple(str(each) for each in entry.get("connection") or ())
    cables = _cables(extents, wiring, entry.get("links") or {})
    return Occupant(name, kind, _places(extents, str(entry["nodes"])), connection, cables, start, end)


def _places(extents: Place, hostlist: str) -> tuple[Place, ...]:
    matched = _HOSTLIST.fullmatch(hostlist)
    if matched is None:
        raise ValueError(f"{hostlist!r} is no list of midplanes or nodes")
    found: dict[Place, None] = {}
    named = 0
    listed = matched[1].split(",") if matched[1] else [matched[2][-len(extents) :]]
    for item in listed:
        low, _, high = item.partition("x")
        first, last = _place(extents, low), _place(extents, high or low)
        named += prod(b - a + 1 for a, b in zip(first, last, strict=True) if b >= a)
        if named > UNITS_MAX:
            raise ValueError("names more units than a machine has")
        for place in product(*(range(a, b + 1) for a, b in zip(first, last, strict=True))):
            found[_padded(place, 0)] = None
    return tuple(found)


def _place(extents: Place, digits: str) -> Place:
    place = tuple(DIGITS.index(digit) for digit in digits)
    if len(place) != len(extents) or any(at >= most for at, most in zip(place, extents, strict=True)):
        raise ValueError(f"{digits!r} is no unit of a machine of {extents}")
    return place


def _cables(extents: Place, wiring: Wiring, links: Mapping[str, Any]) -> tuple[tuple[int, int, int], ...]:
    found = []
    for dimension, (name, ends) in enumerate(wiring.items()):
        for label in links.get(name, ()):
            source, target = ends[label] if type(label) is int and 0 <= label < len(ends) else (-1, -1)
            if dimension >= len(extents) or not all(0 <= at < extents[dimension] for at in (source, target)):
                raise ValueError(f"no cable {label} along {name}")
            found.append((dimension, source, target))
    return tuple(found)


def _entries(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def cables_of(value: object) -> Wiring:
    """Return the wiring of the lines of each dimension, in their order; empty if it is invalid."""
    if not isinstance(value, Mapping):
        return {}
    try:
        wiring = {str(name): [(int(source), int(target)) for source, target in ends] for name, ends in value.items()}
    except (TypeError, ValueError):
        return {}
    return wiring
