"""Blue Gene/L as the allocator sees it."""

from dataclasses import replace

import pytest

from ramp.errors import ConfigurationError, MachineError
from simulation.machine_files import load_machine
from simulation.machines.grid import bits_of
from simulation.machines.interface import Connection, JobRequest, NodeState, Placement
from tests.reference.bluegene_loop import cables_of

pytestmark = pytest.mark.loops

MESH, TORUS, NAV = Connection.MESH, Connection.TORUS, Connection.NAV


@pytest.fixture(scope="module")
def fresh():
    return load_machine("bgl")


@pytest.fixture
def machine(fresh):
    return fresh.copy()


def request(job, shape, connection=TORUS, rotate=True):
    size = 1
    for extent in shape:
        size *= extent
    return JobRequest(job, size, shape, rotate, connection)


def start(machine, job, shape, connection=TORUS, rotate=True):
    placement = machine.place(request(job, shape, connection, rotate))
    assert placement is not None
    machine.allocate(placement)
    return placement


def test_its_size_and_names(machine):
    assert machine.extents == (8, 4, 4)
    assert (machine.capacity, machine.free) == (128, 128)
    assert machine.unit_name(0b0000110) == "bgl012"
    assert machine.hostlist((1 << 128) - 1) == "bgl[000x733]"
    assert machine.layout.cnodes * machine.capacity == 64 * 32 * 32


def test_a_torus_says_which_cables_of_which_line_it_holds(machine):
    placement = start(machine, 1, (3, 1, 2), rotate=False)
    assert machine.describe(placement) == {
        "shape": [3, 1, 2],
        "origin": [0, 0, 0],
        "connection": ["torus"] * 3,
        "nodes": "bgl[000x201]",
        "links": {"x": [1, 2, 3, 6], "y": [], "z": [0, 1, 2, 3]},
    }
    x_lines = {(0, (0, z), label) for z in (0, 1) for label in (1, 2, 3, 6)}
    z_lines = {(2, (x, 0), label) for x in (0, 1, 2) for label in (0, 1, 2, 3)}
    assert set(cables_of(placement)) == x_lines | z_lines
    assert placement.link_count == 2 * 4 + 3 * 4


def test_the_papers_two_tori_share_an_x_line(machine):
    """Figure 2(b): {0, 1, 2} and {3, 4} as tori on one line; a plain ring holds only one."""
    first = start(machine, 1, (3, 1, 1), rotate=False)
    assert first.members[0] == (0, 1, 2)
    everything_else = (1 << 128) - 1 & ~first.nodes & ~machine.grid.bits(((3, 4), (0,), (0,)))
    machine.set_node_state(everything_else, NodeState.DRAINED)
    second = machine.place(request(2, (2, 1, 1), rotate=False))
    assert second.members[0] == (3, 4)
    assert second.links[0] == (4, 5, 7, 10)
    plain = load_machine("torus3d")
    plain.allocate(plain.place(request(1, (3, 1, 1), rotate=False)))
    plain.set_node_state(everything_else, NodeState.DRAINED)
    assert plain.place(request(2, (2, 1, 1), rotate=False)) is None
    assert plain.place(request(2, (2, 1, 1), MESH, rotate=False)) is None


def test_the_place_with_the_fewest_links_wins_and_the_first_of_equals(machine):
    placement = machine.place(request(1, (1, 1, 2)))
    # turned into x: 2 cables instead of the 4 of a ring in y or z
    assert (placement.shape, placement.members[0], placement.links[0]) == ((2, 1, 1), (0, 1), (0, 2))
    assert machine.place(request(1, (1, 1, 2), rotate=False)).link_count == 4
    machine.set_node_state(1, NodeState.DOWN)
    assert machine.place(request(1, (2, 1, 1))).origin == (0, 0, 1)


def test_nav_takes_a_mesh_where_no_torus_is_left(machine):
    assert machine.place(request(1, (8, 2, 4), NAV)).connection == (TORUS,) * 3
    start(machine, 1, (1, 2, 1), MESH, rotate=False)
    machine.set_node_state((1 << 128) - 1 & ~machine.grid.bits(((0,), (2, 3), (0,))), NodeState.DRAINED)
    assert machine.place(request(2, (1, 2, 1), TORUS, rotate=False)) is None
    placement = machine.place(request(2, (1, 2, 1), NAV, rotate=False))
    assert (placement.connection, placement.links) == ((MESH,) * 3, ((), (2,), ()))
    assert machine.place(request(3, (1, 1, 1), NAV)).connection == (TORUS,) * 3


def test_connections_by_dimension_turn_with_the_shape(machine):
    asked = JobRequest(1, 32, (1, 8, 4), True, (MESH, TORUS, MESH))
    placement = machine.place(asked)
    assert placement.shape == (8, 1, 4) or placement.shape == (8, 4, 1)
    assert placement.connection[0] is TORUS
    assert len(placement.links[0]) == 8
    assert sum(map(len, placement.links[1:])) == 3


def test_a_size_without_a_shape_takes_the_shape_with_the_fewest_links(machine):
    assert machine.place(JobRequest(1, 8, connection=TORUS)).link_count == 8
    assert machine.place(JobRequest(1, 11)).size == 12
    assert machine.place(JobRequest(1, 129)) is None
    assert not machine.fits_ever(JobRequest(1, 129))


def test_fewer_extents_than_dimensions_are_filled_up(machine):
    assert machine.place(JobRequest(1, 8, (8,), connection=TORUS)).shape == (8, 1, 1)
    with pytest.raises(MachineError, match="4 extents, the machine 3"):
        machine.place(JobRequest(1, 2, (2, 1, 1, 1)))
    with pytest.raises(MachineError, match="got 2 connections, expected 1 or 3"):
        machine.place(JobRequest(1, 2, (2, 1, 1), connection=(MESH, TORUS)))


def test_failed_links_are_avoided(machine):
    line = request(1, (8, 1, 1), rotate=False)
    lines = [(y, z) for y in range(4) for z in range(4) if (y, z) != (2, 3)]
    for each in lines:
        machine.fail_links(0, each, [9])
    assert machine.place(line).origin == (0, 2, 3)
    machine.fail_links(0, (2, 3), [9])
    assert machine.place(line) is None
    assert not machine.fits_ever(line)
    assert machine.place(request(1, (8, 1, 1), MESH, rotate=False)).links[0] == (1, 2, 3, 5, 7, 11, 13)


def test_what_does_not_exist_cannot_fail(machine):
    with pytest.raises(MachineError, match="x-lines have no cable 14; they have 0 to 13"):
        machine.fail_links(0, (0, 0), [14])
    with pytest.raises(MachineError, match="no y-line at"):
        machine.fail_links(1, (8, 0), [0])


def test_drained_midplanes_get_no_new_job_but_keep_theirs_and_pass_traffic_through(machine):
    placement = start(machine, 1, (2, 2, 2))
    machine.set_node_state(placement.nodes, NodeState.DRAINED)
    assert (machine.capacity, machine.free) == (120, 120)
    unit = next(iter(bits_of(placement.nodes)))
    assert machine.node_state(unit) is NodeState.ALLOCATED
    machine.release(1)
    assert machine.free == 120
    assert machine.node_state(unit) is NodeState.DRAINED
    again = start(machine, 2, (2, 2, 2))
    assert not again.nodes & placement.nodes
    machine.set_node_state(placement.nodes, NodeState.IDLE)
    assert machine.free == 120
    # the torus {0, 1, 2} passes switch 3, whose midplane is down
    machine = load_machine("bgl")
    machine.set_node_state(machine.grid.bits((range(3, 8), range(4), range(4))), NodeState.DOWN)
    assert machine.node_state(127) is NodeState.DOWN
    assert machine.place(request(1, (3, 1, 1), rotate=False)).links[0] == (1, 2, 3, 6)


def test_states_that_cannot_be_set(machine):
    with pytest.raises(MachineError, match="only a job sets"):
        machine.set_node_state(1, NodeState.ALLOCATED)
    with pytest.raises(MachineError, match="no midplane 128"):
        machine.set_node_state(1 << 128, NodeState.DOWN)
    with pytest.raises(MachineError, match="no midplane 128"):
        machine.node_state(128)


def test_taking_what_is_taken_is_refused_with_its_name(machine):
    placement = start(machine, 1, (2, 2, 1), rotate=False)
    with pytest.raises(MachineError, match=r"midplanes bgl\[000x001,010x011|midplanes bgl"):
        machine.allocate(replace(placement, job_id=2))
    mesh = replace(machine.place(request(2, (1, 2, 1), MESH)), members=((0,), (2, 3), (0,)), links=((), (2,), ()))
    mesh = replace(mesh, nodes=machine.grid.bits(mesh.members))
    with pytest.raises(MachineError, match=r"cables \[2\] of y-line \[0, 0\]"):
        machine.allocate(mesh)


def test_placements_of_another_machine_are_refused(machine):
    with pytest.raises(MachineError, match="coordinates must be 0 to 3"):
        machine.allocate(Placement(1, 1, 1, (1, 1, 1), (0, 4, 0), (MESH,) * 3, ((0,), (4,), (0,)), ((), (), ())))
    with pytest.raises(MachineError, match="not among the 14"):
        machine.allocate(Placement(1, 1, 1, (1, 1, 1), (0, 0, 0), (MESH,) * 3, ((0,), (0,), (0,)), ((14,), (), ())))
    with pytest.raises(MachineError, match="3 dimensions, got 2"):
        machine.allocate(Placement(1, 1, 1, (1, 1), (0, 0), (MESH,) * 2, ((0,), (0,)), ((), ())))


def test_a_place_can_be_asked_for_beside_jobs_that_overlap(machine):
    first = start(machine, 1, (8, 2, 4), MESH, rotate=False)
    machine.release(1)
    second = machine.place(request(2, (8, 4, 2), MESH, rotate=False))
    assert first.nodes & second.nodes
    taken = machine.mask_of(first) | machine.mask_of(second)
    place = machine.place_within(taken, request(3, (8, 2, 2), MESH, rotate=False))
    assert place.nodes & (first.nodes | second.nodes) == 0
    assert machine.place_within(taken, request(3, (8, 2, 3), MESH, rotate=False)) is None
    assert machine.free == 128
    assert not machine.running


def test_gaps_are_used_by_the_noncontiguous_policy_only():
    for name, fits in (("two-phase", False), ("noncontiguous", True)):
        machine = load_machine("bgl", allocator=name)
        machine.set_node_state(machine.grid.bits(((1, 2, 4, 5, 6, 7), range(4), range(4))), NodeState.DRAINED)
        placement = machine.place(request(1, (2, 1, 1), rotate=False))
        assert (placement is not None) is fits
    assert placement.members[0] == (0, 3)
    assert placement.links[0] == (1, 2, 3, 6)
    assert machine.hostlist(placement.nodes) == "bgl[000,300]"


def test_compact_places_come_before_gaps():
    machine = load_machine("bgl", allocator="noncontiguous")
    assert machine.place(request(1, (2, 2, 2))).members == ((0, 1), (0, 1), (0, 1))


def test_a_merit_of_ones_own_counts_before_the_cables(tmp_path):
    """Here the far end of x, as a file says it; by links a pair in z would take four cables, in x two."""
    path = tmp_path / "far.py"
    path.write_text(
        "from simulation.machines.allocators.two_phase import TwoPhase\n"
        "class FarEnd(TwoPhase):\n"
        "    def place_cost(self, members):\n"
        "        return -members[0][0]\n"
    )
    placement = load_machine("bgl", allocator=f"{path}:FarEnd").place(request(1, (1, 1, 2)))
    assert (placement.origin, placement.shape, placement.link_count) == ((7, 0, 0), (1, 1, 2), 4)
    assert load_machine("bgl").place(request(1, (1, 1, 2))).link_count == 2


def test_first_found_ignores_the_merit():
    machine = load_machine("bgl", allocator="first-found")
    placement = machine.place(request(1, (1, 1, 2)))
    assert (placement.shape, placement.link_count) == ((1, 1, 2), 4)
    with pytest.raises(ConfigurationError, match=r"allocator: unknown allocator 'best': expected one of .*first-found"):
        load_machine("bgl", allocator="best")


def test_the_first_found_of_equals_wins_even_if_another_could_have_been_cheaper(tmp_path):
    """Mesh {2, 3} would take one cable, but that one failed; by way of 0 it takes two, as does {0, 1} by way of 3."""
    path = tmp_path / "four.toml"
    path.write_text(
        'name = "four"\nkind = "cabled-torus"\nprefix = "f"\n'
        'failed_links = [{dimension = "x", line = [], labels = [0]}]\n'
        '[[dimension]]\nname = "x"\nwidth = 4\ncables = ["2.2>3.5", "2.4>0.5", "0.2>3.3", "3.2>1.5"]\n'
    )
    machine = load_machine(path)
    placement = machine.place(request(1, (2,), MESH))
    assert (placement.members, placement.links) == (((0, 1),), ((2, 3),))
    machine.set_node_state(1, NodeState.DOWN)
    assert machine.place(request(1, (2,), MESH)).members == ((2, 3),)
