"""Boxes of a real site's torus: against brute force over all boxes, and through the plug-in of batch systems."""

import itertools
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.batch.for_sale import ForSale
from ramp.batch.machine import BatchMachine
from ramp.batch.places import Places, open_torus
from ramp.batch.system import Node
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from tests.example_counts import examples
from tests.slots import quoted, refused
from tests.unit.batch.fake_system import FakeSystem

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
SIDE, CORES = 4, 8
CELLS = tuple(itertools.product(range(SIDE), repeat=2))
GRID = [Node(f"n{x}{y}", CORES) for x, y in CELLS]
OPTIONS = {"extents": [SIDE, SIDE], "coordinates": "names"}


def _unit(geometry: tuple[int, ...], *, rotate: bool = True, cores: int = 1, number: int = 1) -> RequestUnit:
    terms = TorusTerms(geometry, rotate)
    return RequestUnit(number, 70, NOW + 9 * HOUR, TotalCores(cores), NOW + HOUR, HOUR, torus=terms)


def _boxes(geometry: tuple[int, int], *, rotate: bool) -> set[frozenset[str]]:
    """Every box of those extents on the torus, over the seams too, cell by cell."""
    shapes = {geometry, geometry[::-1]} if rotate else {geometry}
    return {
        frozenset(f"n{(x + dx) % SIDE}{(y + dy) % SIDE}" for dx in range(width) for dy in range(height))
        for width, height in shapes
        for x, y in CELLS
    }


@cache
def _places() -> Places:
    """Made when first asked for: it compiles its loops, which not every process that collects these tests needs."""
    places = open_torus(OPTIONS, GRID, "big1")
    assert places is not None
    return places


@given(
    st.tuples(st.integers(1, SIDE), st.integers(1, SIDE)),
    st.booleans(),
    st.dictionaries(st.sampled_from(CELLS), st.integers(0, CORES), max_size=14),
)
@settings(max_examples=examples(160))
def test_a_box_is_found_where_brute_force_finds_one(
    geometry: tuple[int, int], rotate: bool, left: dict[tuple[int, int], int]
) -> None:
    places = _places()
    free = {f"n{x}{y}": left.get((x, y), CORES) for x, y in CELLS}
    unit = _unit(geometry, rotate=rotate)
    assert places.refused(unit) is None
    possible = {box for box in _boxes(geometry, rotate=rotate) if all(free[name] == CORES for name in box)}
    parts = places.choose(unit, free)
    assert bool(parts) == bool(possible)
    if parts:
        assert frozenset(name for name, _ in parts) in possible
        assert {count for _, count in parts} == {CORES}


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=8))
@settings(max_examples=examples(60))
def test_no_two_holds_overlap_and_each_is_a_box(geometries: list[tuple[int, int]]) -> None:
    machine = _machine()
    taken: set[str] = set()
    for number, geometry in enumerate(geometries):
        unit = _unit(geometry)
        slot = machine.quote(unit, NOW)
        if isinstance(slot, Refusal) or slot.start != NOW + HOUR:
            free = {f"n{x}{y}" for x, y in CELLS} - taken
            assert not any(box <= free for box in _boxes(geometry, rotate=True))
            continue
        assert isinstance(machine.hold(f"offer-{number}", unit, slot, NOW + HOUR, NOW), Reservation)
        made = {name for name, _ in machine.system.reservations()[-1].parts}
        assert frozenset(made) in _boxes(geometry, rotate=True)
        assert not made & taken
        taken |= made


def test_whole_nodes_are_sold_and_the_share_of_the_market_is_kept() -> None:
    machine = _machine(share=0.5)
    slot = quoted(machine, _unit((2, 2), cores=20), NOW)
    assert slot.cores == 32
    assert isinstance(machine.quote(_unit((2, 4)), NOW), Slot)
    assert refused(machine, _unit((3, 3)), NOW).code is RefusalCode.CORES_TAKEN, "72 of 128 cores"


def test_what_no_box_can_hold_is_refused_for_good() -> None:
    machine = _machine()
    for unit in (_unit((5, 1)), _unit((2, 2, 2)), _unit((2, 2), cores=33)):
        assert refused(machine, unit, NOW).code is RefusalCode.TORUS
    assert isinstance(machine.quote(_unit((2, 2), cores=32), NOW), Slot)


@pytest.mark.parametrize(
    ("options", "nodes", "message"),
    [
        ({"extents": [4, 5]}, GRID, "4x5 gives 20 nodes, expected 16"),
        ({"extents": [4, 4]}, [*GRID[:-1], Node("fat", 16)], r"cores, got 8, 16"),
        ({**OPTIONS}, [*GRID[:-1], Node("m00", 8)], "m00 and n00 have the same coordinates"),
        ({**OPTIONS}, [*GRID[:-1], Node("n-x", 8)], "n-x does not end with coordinates"),
        ({**OPTIONS, "allocator": "no-such"}, GRID, "no-such"),
        ({**OPTIONS, "extent": [4]}, GRID, "extent"),
    ],
)
def test_a_table_that_is_no_such_torus_is_told(options: dict[str, Any], nodes: list[Node], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_torus(options, nodes, "big1")


ROWS = {"a[1-2]": [1, 0], "b": [0, 1], "c": [0, 0]}
FOUR = [Node(name, 1) for name in ("a1", "a2", "b", "c")]


def test_nodes_by_a_table_in_which_a_list_runs_along_the_last_dimension() -> None:
    places = open_torus({"extents": [2, 2], "coordinates": "table", "rows": ROWS}, FOUR, "big1")
    assert places is not None
    free = dict.fromkeys(("a1", "a2", "b", "c"), 1)
    assert places.choose(_unit((1, 2), rotate=False), {**free, "c": 0}) == (("a1", 1), ("a2", 1))
    assert places.choose(_unit((2, 1), rotate=False), {**free, "a1": 0}) == (("b", 1), ("a2", 1))
    assert places.choose(_unit((2, 1), rotate=False), {**free, "a1": 0, "b": 0}) == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "rows.*is missing"),
        ({**ROWS, "b": "0,1"}, r"big1.torus.rows.b.*expected coordinates such as \[0, 0\]"),
        ({**ROWS, "b": [0, True]}, "expected coordinates"),
        ({**ROWS, "b": [0]}, r"b: coordinates \[0\] are outside the machine of 2x2"),
        ({**ROWS, "b": [0, 2]}, r"b: coordinates \[0, 2\] are outside"),
        ({**ROWS, "b": [0, 0]}, "c and b have the same coordinates"),
        ({**ROWS, "d": [0, 1]}, "d is not in the partition"),
        ({"a[1-2]": [1, 0], "b": [0, 1]}, "1 nodes are not in the table, for example c"),
        ({**ROWS, "b[": [0, 1]}, "invalid list of nodes"),
        ({**ROWS, "b,b": [0, 0]}, "b is listed twice"),
    ],
)
def test_a_table_of_coordinates_that_leaves_a_node_or_a_place_out_is_told(rows: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_torus({"extents": [2, 2], "coordinates": "table", "rows": rows}, FOUR, "big1")


def test_a_table_that_nothing_would_read_is_told() -> None:
    with pytest.raises(ConfigurationError, match='coordinates = "table"'):
        open_torus({"extents": [2, 2], "rows": ROWS}, FOUR, "big1")


def test_nodes_by_their_order() -> None:
    places = open_torus({"extents": [2, 2]}, [Node(name, 1) for name in ("a", "b", "c", "d")], "big1")
    assert places is not None
    free = {"a": 1, "b": 0, "c": 1, "d": 1}
    assert places.choose(_unit((2, 1), rotate=False), free) == (("a", 1), ("c", 1))
    assert places.choose(_unit((1, 2), rotate=False), free) == (("c", 1), ("d", 1))


def _machine(share: float = 1.0) -> BatchMachine:
    system = FakeSystem(nodes=list(GRID))
    plain = PluginSettings("big1", SIDE * SIDE * CORES, CORES, NOW)
    return BatchMachine(system, plain, ForSale(share=share), places=_places())
