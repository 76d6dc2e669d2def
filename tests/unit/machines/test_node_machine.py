"""A machine of one's own that only chooses nodes: its answers are checked, and its file is named when it fails."""

from typing import Any

import pytest

from ramp.errors import MachineError
from simulation import NodeMachine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest, NodeState, Placement, units_out


class Chosen(NodeMachine):
    """Chooses what the test says, by default the highest nodes."""

    answer: Any = None

    def choose(self, size: int, free: int) -> int | None:
        if self.answer == "raise":
            raise ZeroDivisionError("no switches")
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]
        nodes = [1 << number for number in range(8) if free >> number & 1]
        return sum(nodes[-size:])


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
    assert "test_node_machine.py:" in str(raised.value)


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
