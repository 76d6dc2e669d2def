"""The routability check against plain walks over the rules, on whole small tori and drawn sets."""

import random
from itertools import pairwise, product

import pytest

from ramp.errors import MachineError
from simulation.machines.boxes.ranked import build_box_table
from simulation.machines.grid import Grid, bits_of
from simulation.machines.routing import Fabric
from tests.reference import angara_loop as loop


def cells(grid: Grid, units: int) -> frozenset:
    return frozenset(grid.coordinates(unit) for unit in bits_of(units))


def drawn_sets(grid: Grid, count: int, seed: int) -> list[int]:
    """Random sets, and boxes that lack a few nodes, which are the interesting ones."""
    chance = random.Random(seed)
    table = build_box_table(grid)
    sets = [chance.getrandbits(grid.size) & chance.getrandbits(grid.size) for _ in range(count // 3)]
    while len(sets) < count:
        units = table.units_of(chance.randrange(len(table.masks)))
        for _ in range(chance.randrange(3)):
            units &= ~(1 << chance.randrange(grid.size))
        sets.append(units)
    return [units for units in sets if units]


def drawn_links(grid: Grid, count: int, chance: random.Random) -> frozenset:
    return frozenset((chance.randrange(grid.size), chance.randrange(len(grid.extents))) for _ in range(count))


@pytest.mark.parametrize("extents", [(5,), (3, 3), (4, 3), (3, 2, 2), (2, 2, 2, 2), (1, 4, 3)])
def test_reached_nodes_are_those_of_plain_walks(extents: tuple[int, ...]) -> None:
    grid = Grid(extents)
    chance = random.Random(7)
    for units in drawn_sets(grid, 60, seed=1):
        links = drawn_links(grid, chance.choice((0, 0, 1, 3)), chance)
        failed = frozenset((grid.coordinates(unit), axis) for unit, axis in links)
        fabric = Fabric(grid, links)
        inside = cells(grid, units)
        for source in bits_of(units):
            here = grid.coordinates(source)
            assert cells(grid, fabric.reached(source, units)) == loop.reach(here, inside, extents, failed)
            with_steps = fabric.reached(source, units, special_steps=True)
            assert cells(grid, with_steps) == loop.reach_with_steps(here, inside, extents, failed)


@pytest.mark.parametrize("extents", [(4, 3), (3, 3, 2), (4, 2, 2), (3, 2, 2, 2)])
def test_every_box_is_routable(extents: tuple[int, ...]) -> None:
    """Also the boxes that run over the seam: with a free choice of direction a pair need not leave the box."""
    table = build_box_table(Grid(extents))
    fabric = Fabric(table.grid)
    for box in range(len(table.masks)):
        units = table.units_of(box)
        assert fabric.is_routable(units)
        assert loop.is_routable(cells(table.grid, units), extents)


def test_two_nodes_with_a_gap_are_not_routable() -> None:
    fabric = Fabric(Grid((5, 1)))
    assert not fabric.is_routable(0b00101)
    assert fabric.is_routable(0b00111)
    assert fabric.is_routable(0b10001)  # neighbours over the seam


def test_a_corner_needs_a_special_step() -> None:
    """Three nodes of a 2x2 square: from (1, 0) to (0, 1) the order is +y before -x, which leads over the fourth."""
    grid = Grid((4, 4))
    corner = sum(1 << grid.unit(node) for node in [(0, 0), (1, 0), (0, 1)])
    fabric = Fabric(grid)
    assert not fabric.is_routable(corner)
    assert not loop.is_routable(cells(grid, corner), grid.extents)
    assert fabric.is_routable(corner, special_steps=True)


@pytest.mark.parametrize("special_steps", [False, True])
@pytest.mark.parametrize("extents", [(4, 4), (4, 3, 2)])
def test_tables_hold_real_routes_for_all_pairs_and_no_circle(extents: tuple[int, ...], special_steps: bool) -> None:
    grid = Grid(extents)
    chance = random.Random(3)
    tables = 0
    for units in drawn_sets(grid, 40, seed=2):
        links = drawn_links(grid, chance.choice((0, 1)), chance)
        fabric = Fabric(grid, links)
        failed = frozenset((grid.coordinates(unit), axis) for unit, axis in links)
        table = fabric.route_table(units, special_steps=special_steps)
        assert fabric.is_routable(units, special_steps=special_steps) == (table is not None)
        if table is None:
            continue
        tables += 1
        members = list(bits_of(units))
        assert set(table) == {(u, v) for u, v in product(members, members) if u != v}
        waits: dict[tuple, set[tuple]] = {}
        for (source, target), route in table.items():
            assert route.nodes[0] == source
            assert route.nodes[-1] == target
            rings = []
            for one, other, direction in zip(route.nodes[:-1], route.nodes[1:], route.directions, strict=True):
                assert units >> other & 1
                axis, step = direction % len(extents), 1 if direction < len(extents) else -1
                here = grid.coordinates(one)
                assert loop.hop(here, axis, step, extents, failed) == grid.coordinates(other)
                ring = (direction, here[:axis] + here[axis + 1 :])
                if not rings or rings[-1] != ring:
                    rings.append(ring)
            if not route.special:
                assert list(route.directions) == sorted(route.directions)
                assert not {d % len(extents) for d in route.directions if d < len(extents)} & {
                    d % len(extents) for d in route.directions if d >= len(extents)
                }
            for one, other in pairwise(rings):
                waits.setdefault(one, set()).add(other)
        assert not has_circle(waits)
    assert tables > 5


def has_circle(waits: dict[tuple, set[tuple]]) -> bool:
    """Take away rings that wait for nobody, until none or only circles are left."""
    left = {ring: set(after) for ring, after in waits.items()}
    for after in waits.values():
        for ring in after:
            left.setdefault(ring, set())
    while left:
        ends = [ring for ring, after in left.items() if not after]
        if not ends:
            return True
        for ring in ends:
            del left[ring]
        for after in left.values():
            after.difference_update(ends)
    return False


def test_a_circle_of_special_steps_is_refused() -> None:
    """A 3x3 square with a notch: every pair has a route, but the routes' rings would wait for one another."""
    grid = Grid((8, 8))
    notched = [node for node in product(range(3), range(3)) if node != (1, 2)]
    units = sum(1 << grid.unit(node) for node in notched)
    fabric = Fabric(grid)
    waits: dict[tuple, set[tuple]] = {}
    for source, target in product(bits_of(units), bits_of(units)):
        if source == target:
            continue
        route = next(fabric.routes(source, target, units, special_steps=True))
        rings = [fabric.ring(node, direction) for node, direction in zip(route.nodes, route.directions, strict=False)]
        for one, other in pairwise(rings):
            if one != other:
                waits.setdefault(one, set()).add(other)
    assert has_circle(waits)
    assert not fabric.is_routable(units, special_steps=True)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(MachineError, match="unit 9 has no link"):
        Fabric(Grid((3, 3)), frozenset({(9, 0)}))
