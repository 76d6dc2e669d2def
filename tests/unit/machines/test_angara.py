"""Machines of Angara: which sets of nodes their routes keep apart, and the routes themselves."""

import random
from itertools import pairwise, product

import pytest

from ramp.errors import ConfigurationError, MachineError
from simulation.machine_files import load_machine
from simulation.machines.angara import AngaraMachine
from simulation.machines.boxes.policy import mean_distance, mean_torus_distance
from simulation.machines.boxes.ranked import box_table, build_box_table
from simulation.machines.description import BuildOptions, build_machine
from simulation.machines.grid import Grid, bits_of
from simulation.machines.interface import Connection, JobRequest, NodeState, has_places
from simulation.machines.render import Display, Style, render
from simulation.machines.routing import Fabric
from simulation.machines.view import view_of
from tests.reference import angara_loop as loop

pytestmark = pytest.mark.loops

SYSTEMS = {
    "angara-4x4x2": 32, "angara-4x2x2x2": 32, "angara-4x3x3": 36, "angara-3x3x2x2": 36, "angara-4x4x4": 64,
    "angara-4x4x2x2": 64, "angara-6x4x4": 96, "angara-4x4x3x2": 96, "angara-8x6x3": 144, "angara-4x4x3x3": 144,
    "angara-desmos": 32,
}  # fmt: skip
"""The table of the study, and Desmos."""
PLAIN = {"name": "t", "kind": "angara-torus", "prefix": "t", "extents": [4, 4], "dimension_names": ["x", "y"]}


def machine_of(**changes: object) -> AngaraMachine:
    found = build_machine(PLAIN | changes, source="t.toml")
    assert isinstance(found, AngaraMachine)
    return found


def node(machine: AngaraMachine, *coordinates: int) -> int:
    return 1 << machine.grid.unit(coordinates)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_systems_come_with_the_project(name: str) -> None:
    machine = load_machine(name)
    assert has_places(machine)
    assert machine.free == machine.capacity == SYSTEMS[name]
    for size in (1, 2, SYSTEMS[name]):
        placement = machine.place(JobRequest(1, size))
        assert placement.size == size


@pytest.mark.parametrize(
    ("extents", "boxes"),
    [((8, 6, 3), 12369), ((4, 4, 3, 3), 8281), ((6, 4, 4), 5239), ((4, 4, 3, 2), 3549), ((4, 2, 2, 2), 351)],
)
def test_number_of_boxes_is_that_of_the_formula(extents: tuple[int, ...], boxes: int) -> None:
    """Fact sheet, section 1: the product of d(d-1)+1."""
    table = box_table(extents, wrap=True)
    assert len(table.masks) == boxes
    assert len({table.units_of(box) for box in range(boxes)}) == boxes


def test_mean_distances_are_those_of_all_pairs() -> None:
    extents = (4, 3, 2)
    for shape in product(range(1, 5), range(1, 4), range(1, 3)):
        nodes = list(product(*map(range, shape)))
        pairs = [(u, v) for u in nodes for v in nodes if u != v]
        plain = sum(abs(a - b) for u, v in pairs for a, b in zip(u, v, strict=True))
        wrapped = sum(
            min(abs(a - b), p - abs(a - b)) if p == d else abs(a - b)
            for u, v in pairs
            for a, b, p, d in zip(u, v, shape, extents, strict=True)
        )
        assert mean_distance(shape) * max(len(pairs), 1) == plain
        assert mean_torus_distance(shape, extents) * max(len(pairs), 1) == wrapped


def test_names_have_a_digit_a_dimension() -> None:
    machine = load_machine("angara-4x4x3x2")
    assert isinstance(machine, AngaraMachine)
    placement = machine.place(JobRequest(1, 96))
    assert placement is not None
    assert machine.describe(placement) == {
        "shape": [4, 4, 3, 2],
        "origin": [0, 0, 0, 0],
        "connection": ["torus"] * 4,
        "nodes": "ang[0000x3321]",
        "links": {},
    }
    assert machine.unit_name(machine.grid.unit((3, 2, 1, 0))) == "ang3210"


def test_shapes_are_turned_and_tori_fill_their_rings() -> None:
    machine = machine_of(extents=[4, 3], allocator="find-systems")
    turned = machine.place(JobRequest(1, 4, (1, 4)))
    assert turned.shape == (4, 1)
    assert machine.place(JobRequest(1, 4, (1, 4), rotate=False)) is None
    assert machine.place(JobRequest(1, 2, (2, 1), connection=Connection.TORUS)) is None
    ring = machine.place(JobRequest(1, 2, connection=Connection.TORUS))
    assert ring.shape == (1, 3)
    assert ring.connection == (Connection.MESH, Connection.TORUS)
    with pytest.raises(MachineError, match="3 extents"):
        machine.place(JobRequest(1, 8, (2, 2, 2)))
    with pytest.raises(MachineError, match="got 1 connections, expected 1 or 2"):
        machine.place(JobRequest(1, 8, connection=(Connection.MESH,)))


def test_drained_and_down_nodes_are_left_out() -> None:
    machine = machine_of()
    machine.set_node_state(node(machine, 1, 1), NodeState.DRAINED)
    machine.set_node_state(node(machine, 2, 2), NodeState.DOWN)
    assert machine.capacity == 14
    assert not machine.fits_ever(JobRequest(1, 14))
    assert machine.fits_ever(JobRequest(1, 8))
    placement = machine.place(JobRequest(1, 8))
    assert not placement.nodes & (node(machine, 1, 1) | node(machine, 2, 2))
    machine.set_node_state(node(machine, 1, 1) | node(machine, 2, 2), NodeState.IDLE)
    assert machine.fits_ever(JobRequest(1, 16))


def test_a_failed_node_is_bypassed_where_routes_lead_around_it() -> None:
    """A 4x4 torus without one node: no box of 15, but with first and last steps the rest is a routable set."""
    request = JobRequest(1, 9)
    plain, bypassing = machine_of(), machine_of(bypass=True)
    for machine in (plain, bypassing):
        machine.set_node_state(node(machine, 0, 0), NodeState.DOWN)
    assert machine_of().place(request) is not None
    request = JobRequest(1, 13)  # one more than 3x4
    assert plain.place(request) is None
    placement = bypassing.place(request)
    assert placement.size >= request.size
    assert not placement.nodes & node(bypassing, 0, 0)
    assert bypassing.fabric.is_routable(placement.nodes, special_steps=True)
    bypassing.allocate(placement)
    assert bypassing.free == 15 - placement.size


def test_boxes_over_a_failed_link_are_not_given_out() -> None:
    machine = machine_of(extents=[4, 1], allocator="find-systems")
    whole = machine.copy()
    machine.fail_link(1, 0)
    placement = machine.place(JobRequest(1, 2))
    assert placement.nodes != 0b0110
    assert machine.place(JobRequest(1, 4)) is None  # the ring's routes take every cable
    assert machine.place(JobRequest(1, 4, (4, 1), connection=Connection.TORUS)) is None
    longest = max((box for box in range(1, 16) if machine.fabric.is_routable(box)), key=int.bit_count)
    assert longest.bit_count() == 4  # the ring without one cable is a line, which the bypass finds
    assert machine_of(extents=[4, 1], bypass=True).place(JobRequest(1, 4)) is not None
    assert whole.place(JobRequest(1, 4)) is not None
    assert machine.copy().place(JobRequest(1, 4)) is None
    with pytest.raises(MachineError, match="unit 4 has no link"):
        machine.fail_link(4, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extents": [4, 0]}, r"extents\[1\]: got 0, expected a whole number from 1 to 36"),
        ({"extents": [4, True]}, r"extents\[1\]: got true, expected a whole number"),
        ({"dimension_names": ["x"]}, r"expected 2 different names"),
        ({"dimension_names": ["x", "x"]}, r"expected 2 different names"),
        ({"allocator_options": {"transit": 4}}, "allocator_options.transit: unknown; did you mean 'transit_max'"),
        ({"allocator_options": {"transit_max": -1}}, "transit_max: got -1, expected a whole number from 0"),
        ({"allocator_options": {"exact": 1}}, "exact: got 1, expected true or false"),
        ({"colour": "red"}, "colour: unknown"),
        ({"drained": "t99"}, r"drained: coordinates \[9, 9\] are outside"),
        ({"failed_links": [{"node": "t00", "dimension": "q"}]}, "unknown dimension 'q': expected one of x, y"),
        (
            {"failed_links": [{"node": "t77", "dimension": "x"}]},
            r"failed_links\[0\].node: coordinates \[7, 7\] are outside",
        ),
        ({"extents": [36, 36, 36], "dimension_names": ["x", "y", "z"]}, "too many boxes .* expected at most"),
    ],
)
def test_wrong_descriptions_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        machine_of(**changes)


def test_allocators_belong_to_their_kind_of_machine() -> None:
    with pytest.raises(
        ConfigurationError,
        match="allocator: allocator 'two-phase' does not suit this machine; choose one of base, base-no-wrap",
    ):
        machine_of(allocator="two-phase")
    with pytest.raises(
        ConfigurationError, match="allocator: allocator 'base' does not suit this machine; choose one of first-found"
    ):
        load_machine("bgl", allocator="base")


def test_options_go_with_the_allocator_of_the_file() -> None:
    stated = {"allocator": "find-systems", "allocator_options": {"transit_max": 0, "wrap": False}}
    machine = machine_of(**stated)
    assert machine.place(JobRequest(1, 5)).size == 6
    over_seam = sum(node(machine, 3, y) | node(machine, 0, y) for y in range(4))
    machine.set_node_state((1 << 16) - 1 & ~over_seam, NodeState.DRAINED)
    assert machine.place(JobRequest(1, 8)) is None
    wrapping = build_machine(PLAIN | stated, source="t.toml", options=BuildOptions("torus-distance"))
    wrapping.set_node_state((1 << 16) - 1 & ~over_seam, NodeState.DRAINED)
    assert wrapping.place(JobRequest(1, 8)) is not None


def test_a_description_states_what_is_out_of_service() -> None:
    machine = machine_of(
        drained="t[00x01]", down="t33", failed_links=[{"node": "t20", "dimension": "y"}], allocator="find-systems"
    )
    assert machine.capacity == 13
    assert machine.fabric.failed_links == {(machine.grid.unit((2, 0)), 1)}


def test_maps_show_four_dimensions_as_slices() -> None:
    machine = load_machine("angara-desmos")
    placement = machine.place(JobRequest(1, 8))
    assert placement is not None
    machine.allocate(placement)
    display: Display = "jobs"
    text = render(view_of(machine), display, Style(color=False))
    assert text.count("A") >= 8
    assert "desmos[" in text


def test_boxes_without_wrap_are_those_of_a_mesh() -> None:
    table = build_box_table(Grid((4, 3)), wrap=False)
    assert len(table.masks) == (4 * 5 // 2) * (3 * 4 // 2)


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
