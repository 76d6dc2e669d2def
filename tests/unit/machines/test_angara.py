"""The Angara torus as a machine: states, names, failed nodes and links, and its description files."""

from itertools import product

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
from simulation.machines.view import view_of

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


def test_a_job_takes_and_gives_back_its_nodes() -> None:
    machine = machine_of()
    placement = machine.place(JobRequest(7, 4))
    assert placement is not None
    machine.allocate(placement)
    assert machine.free == 12
    assert machine.node_state(next(iter(bits_of(placement.nodes)))) is NodeState.ALLOCATED
    with pytest.raises(MachineError, match="job 7 is already running"):
        machine.allocate(placement)
    other = JobRequest(8, 4)
    again = machine.place(other)
    assert not again.nodes & placement.nodes
    machine.release(7)
    with pytest.raises(MachineError, match="job 7 is not running"):
        machine.release(7)
    assert machine.free == 16


def test_taken_nodes_are_named() -> None:
    machine = machine_of()
    first = machine.place(JobRequest(1, 16))
    assert first is not None
    machine.allocate(first)
    second = machine_of().place(JobRequest(2, 2))
    assert second is not None
    with pytest.raises(MachineError, match=r"nodes t\[00x\d\d\] are not free"):
        machine.allocate(second)


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


def test_fits_ever_looks_past_running_jobs() -> None:
    machine = machine_of()
    placement = machine.place(JobRequest(1, 16))
    assert placement is not None
    machine.allocate(placement)
    assert machine.place(JobRequest(2, 16)) is None
    assert machine.fits_ever(JobRequest(2, 16))
    assert not machine.fits_ever(JobRequest(2, 17))


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
