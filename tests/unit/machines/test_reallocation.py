"""A running job's new size: what it keeps, where it goes when it must, and that nobody else is touched."""

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.errors import MachineError
from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Connection, JobRequest, NodeState

pytestmark = pytest.mark.loops

MACHINES = {name: load_machine(name) for name in ("bgl-half", "torus3d", "angara-4x4x2")}


def test_a_flat_machine_keeps_what_both_sizes_have() -> None:
    machine = FlatMachine(10)
    machine.allocate(machine.place(JobRequest(1, 4)))
    machine.allocate(machine.place(JobRequest(2, 3)))
    grown = machine.reallocate(JobRequest(1, 7))
    assert (grown.kept, grown.after.size, machine.free) == (4, 7, 0)
    assert machine.reallocate(JobRequest(2, 4)) is None
    shrunk = machine.reallocate(JobRequest(1, 1))
    assert (shrunk.kept, shrunk.after.size, machine.free) == (1, 1, 6)
    machine.release(1)
    assert machine.free == 7


@pytest.mark.parametrize("machine", [FlatMachine(4), *MACHINES.values()], ids=lambda one: one.name)
def test_who_does_not_run_has_no_size(machine) -> None:
    with pytest.raises(MachineError, match="job 5 is not running"):
        machine.copy().reallocate(JobRequest(5, 2))


def test_a_box_on_blue_gene_grows_by_whole_planes_and_its_cables_come_along() -> None:
    """A torus of 4x4 midplanes becomes one of 8x4: all units stay, and every line of x is a ring of eight."""
    machine = load_machine("torus3d")
    before = machine.place(JobRequest(1, 16, (4, 4, 1), rotate=False, connection=Connection.MESH))
    machine.allocate(before)
    change = machine.reallocate(JobRequest(1, 32, connection=Connection.TORUS))
    assert change.kept == 16
    assert change.after.size == 32
    assert len(change.after.links) == 3
    assert change.before.nodes & ~change.after.nodes == 0


def test_a_neighbour_in_the_way_makes_the_job_move_or_stay_as_it_is() -> None:
    machine = load_machine("angara-4x4x2")
    machine.allocate(machine.place(JobRequest(1, 4, (2, 2, 1), rotate=False)))
    mine = machine.running[1].nodes
    everything = (1 << 32) - 1
    machine.set_node_state(everything & ~mine, NodeState.DOWN)
    assert machine.reallocate(JobRequest(1, 8)) is None
    assert machine.running[1].nodes == mine
    shrunk = machine.reallocate(JobRequest(1, 2))
    assert shrunk.after.nodes & ~mine == 0


@pytest.mark.parametrize("name", MACHINES)
@given(moves=st.lists(st.tuples(st.integers(0, 5), st.sampled_from((1, 2, 4, 8, 16))), min_size=4, max_size=14))
@settings(max_examples=examples(40), deadline=None)
def test_any_history_of_sizes(name: str, moves: list[tuple[int, int]]) -> None:
    """No unit in two jobs, none lost, others untouched; what is said to be kept is; smaller always fits within."""
    machine = MACHINES[name].copy()
    for job, size in moves:
        others = {number: held for number, held in machine.running.items() if number != job}
        if job not in machine.running:
            placement = machine.place(JobRequest(job, size))
            if placement is not None:
                machine.allocate(placement)
        elif size == 1 and machine.running[job].size == 1:
            machine.release(job)
        else:
            before = machine.running[job]
            change = machine.reallocate(JobRequest(job, size))
            assert change is not None or size > before.size
            held = machine.running[job]
            assert held == (before if change is None else change.after)
            if change is not None:
                assert change.before == before
                assert change.kept == (before.nodes & held.nodes).bit_count()
                assert held.size >= size
                assert (size > before.size) or held.nodes & ~before.nodes == 0
        assert {number: held for number, held in machine.running.items() if number != job} == others
        union = 0
        for held in machine.running.values():
            assert union & held.nodes == 0
            union |= held.nodes
        assert machine.free == machine.capacity - union.bit_count()
