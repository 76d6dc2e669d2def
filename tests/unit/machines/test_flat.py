"""The flat machine and what every request must satisfy."""

import pytest

from ramp.errors import MachineError
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Connection, JobRequest, NodeState, Placement


def test_processors_are_taken_and_given_back():
    machine = FlatMachine(10)
    first = machine.place(JobRequest(1, 6))
    assert (first.size, machine.free) == (6, 10)
    machine.allocate(first)
    assert (machine.free, machine.capacity) == (4, 10)
    assert machine.place(JobRequest(2, 5)) is None
    assert machine.fits_ever(JobRequest(2, 10))
    assert not machine.fits_ever(JobRequest(2, 11))
    assert machine.place_first([JobRequest(2, 5), JobRequest(3, 4)])[0] == 1
    machine.release(1)
    assert machine.free == 10
    assert dict(machine.running) == {}


def test_what_is_not_there_is_refused():
    machine = FlatMachine(4)
    machine.allocate(Placement(1, 3))
    for wrong, message in [
        (Placement(1, 1), "already running"),
        (Placement(2, 2), "needs 2 processors, but 1 are free"),
    ]:
        with pytest.raises(MachineError, match=message):
            machine.allocate(wrong)
    with pytest.raises(MachineError, match="not running"):
        machine.release(2)
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
