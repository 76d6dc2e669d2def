"""Machines without cables, and what all share: the numbering of units, requests, and nodes that one chooses oneself."""

from itertools import product
from typing import Any

import pytest

from ramp.errors import MachineError
from simulation import NodeMachine
from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.grid import Grid, bits_of, rotations, shapes_of_size
from simulation.machines.interface import Connection, JobRequest, Machine, NodeState, Placement, units_out


def test_what_is_not_there_is_refused():
    machine = FlatMachine(4)
    with pytest.raises(MachineError, match="no processor 4"):
        machine.node_state(4)
    with pytest.raises(MachineError, match="one by one"):
        machine.set_node_state(1, NodeState.DOWN)
    with pytest.raises(MachineError, match="at least 1 processor"):
        FlatMachine(0)


def test_a_request_makes_sense():
    with pytest.raises(MachineError, match="at least 1, got 0"):
        JobRequest(1, 0)
    with pytest.raises(MachineError, match="2x2x2 has 8 units, but size is 7"):
        JobRequest(1, 7, (2, 2, 2))
    with pytest.raises(MachineError, match="extent below 1"):
        JobRequest(1, 1, (1, -1, -1))


def test_requests_of_one_kind_differ_in_their_number_only():
    kinds = {
        JobRequest(job, 8, shape, rotate, connection).kind
        for job in (1, 2)
        for shape in (None, (2, 2, 2))
        for rotate in (True, False)
        for connection in (Connection.MESH, Connection.TORUS)
    }
    assert len(kinds) == 8
    assert JobRequest(1, 8).kind != JobRequest(1, 4).kind


@pytest.mark.parametrize("extents", [(8, 4, 4), (5,), (3, 2), (2, 3, 2, 3)])
def test_units_count_with_the_last_dimension_fastest(extents):
    grid = Grid(extents)
    for number, place in enumerate(product(*map(range, extents))):
        assert grid.unit(place) == number
        assert grid.coordinates(number) == place
    assert grid.size == number + 1


def test_places_outside_are_refused():
    for place in [(8, 0, 0), (0, -1, 0), (0, 0)]:
        with pytest.raises(MachineError, match="are outside the machine"):
            Grid((8, 4, 4)).unit(place)
    with pytest.raises(MachineError, match="at least 1"):
        Grid((4, 0))


def test_bits_of_a_product():
    grid = Grid((3, 2, 4))
    members = ((0, 2), (1,), (0, 3))
    assert list(bits_of(grid.bits(members))) == sorted(grid.unit(place) for place in product(*members))


def test_lines_through_a_box():
    grid = Grid((8, 4, 4))
    box = ((2, 3), (1, 2), (0, 3))
    crossing = [grid.line_coordinates(0, line) for line in grid.lines_through(0, box)]
    assert crossing == [(1, 0), (1, 3), (2, 0), (2, 3)]
    assert [grid.line_coordinates(1, line) for line in grid.lines_through(1, box)] == [(2, 0), (2, 3), (3, 0), (3, 3)]
    assert [grid.line_count(d) for d in range(3)] == [16, 32, 32]
    assert {grid.line(2, (x, y)) for x in range(8) for y in range(4)} == set(range(32))
    assert Grid((5,)).line_coordinates(0, 0) == ()


def test_rotations_begin_with_the_shape_as_given_and_have_no_doubles():
    assert rotations((1, 2, 3))[0] == (0, 1, 2)
    assert len(rotations((1, 2, 3))) == 6
    assert len(rotations((1, 2, 2))) == 3
    assert len(rotations((2, 2, 2))) == 1


def test_shapes_of_a_size():
    assert shapes_of_size(8, (8, 4, 4)) == [(1, 1, 8), (1, 2, 4), (2, 2, 2)]
    assert shapes_of_size(7, (8, 4, 4)) == [(1, 1, 7)]
    assert shapes_of_size(11, (8, 4, 4)) == [(1, 2, 6), (1, 3, 4), (2, 2, 3)]  # no box has 11: the next is 12
    assert shapes_of_size(128, (8, 4, 4)) == [(4, 4, 8)]
    assert shapes_of_size(129, (8, 4, 4)) == []


class Chosen(NodeMachine):
    """Chooses what the test says, by default the highest nodes."""

    answer: Any = None

    def choose(self, size: int, free: int) -> int | None:
        if self.answer == "raise":
            raise ZeroDivisionError("no switches")
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]
        nodes = [1 << number for number in range(free.bit_length()) if free >> number & 1]
        return sum(nodes[-size:])


@pytest.mark.loops
@pytest.mark.parametrize(
    ("machine", "told"),
    [
        (FlatMachine(64), "needs 64 processors, but 32 are free"),
        (Chosen("chosen", 64), "taken or out of service"),
        (load_machine("bgl-half"), r"midplanes bgl\[000x133\] are not free"),
        (load_machine("angara-4x4x4"), r"nodes ang\[\d{3}x\d{3}\] are not free"),
    ],
    ids=["flat", "nodes", "cables", "angara"],
)
def test_units_are_taken_and_given_back(machine: Machine, told: str) -> None:
    machine = machine.copy()
    whole, half, other = JobRequest(1, 64), JobRequest(2, 32), JobRequest(3, 32)
    everything, placement = machine.place(whole), machine.place(half)
    machine.allocate(placement)
    assert (machine.free, machine.capacity, dict(machine.running)) == (32, 64, {2: placement})
    assert {machine.node_state(unit) for unit in bits_of(placement.nodes)} <= {NodeState.ALLOCATED}
    assert machine.place(whole) is None
    assert machine.fits_ever(whole)
    assert not machine.fits_ever(JobRequest(1, 65))
    index, beside = machine.place_first([whole, other])
    assert (index, beside.nodes & placement.nodes) == (1, 0)
    for wrong, message in ((placement, "job 2 is already running"), (everything, told)):
        with pytest.raises(MachineError, match=message):
            machine.allocate(wrong)
    machine.release(2)
    with pytest.raises(MachineError, match="job 2 is not running"):
        machine.release(2)
    assert (machine.free, dict(machine.running)) == (64, {})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("raise", "choose failed on m: ZeroDivisionError: no switches"),
        (0b1, "wrong answer of choose on m: got 1, 0 of them not free, expected 2 free nodes"),
        (0b11 << 7, "wrong answer of choose on m: got 2, 1 of them not free, expected 2 free nodes"),
        ([0, 1], "wrong answer of choose on m: got list, expected 2 free nodes"),
        (True, "wrong answer of choose on m: got bool, expected 2 free nodes"),
    ],
    ids=str,
)
def test_a_wrong_choice_names_file_and_line(answer: Any, told: str) -> None:
    machine = Chosen("m", 8)
    machine.answer = answer
    with pytest.raises(MachineError) as raised:
        machine.place(JobRequest(1, 2))
    assert told in str(raised.value)
    assert "test_flat.py:" in str(raised.value)


def test_jobs_grow_and_shrink_in_place() -> None:
    machine = Chosen("m", 8)
    machine.allocate(Placement(1, 2, 0b11))
    grown = machine.reallocate(JobRequest(1, 4))
    assert (grown.after.nodes, grown.kept, machine.free) == (0b1100_0011, 2, 4)
    assert machine.reallocate(JobRequest(1, 9)) is None
    shrunk = machine.reallocate(JobRequest(1, 1))
    assert (shrunk.after.nodes, shrunk.kept, machine.free) == (0b1000_0000, 1, 7)
    machine.release(1)
    assert machine.free == 8


def test_nodes_out_of_service_are_not_chosen() -> None:
    machine = Chosen("m", 8)
    before = machine.copy()
    machine.set_node_state(0b1111_0000, NodeState.DOWN)
    machine.set_node_state(0b1000_0000, NodeState.DRAINED)
    placement = machine.place(JobRequest(1, 2))
    assert placement.nodes == 0b1100
    assert (machine.capacity, machine.units_out, machine.node_state(7)) == (4, 0b1111_0000, NodeState.DRAINED)
    assert not machine.fits_ever(JobRequest(1, 5))
    with pytest.raises(MachineError, match="taken or out of service"):
        machine.allocate(Placement(1, 1, 0b1_0000))
    assert (before.capacity, machine.copy().capacity, machine.capacity) == (8, 4, 4)


def test_a_machine_without_units_out_is_told_what_planning_needs() -> None:
    with pytest.raises(MachineError, match="FlatMachine: `units_out` must be a bit set"):
        units_out(FlatMachine(4))
