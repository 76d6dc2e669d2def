"""What every allocator must do that is declared, here or by an installed package, on the machines that it is for."""

import random

import pytest

from simulation.machine_files import load_machine, machine_names
from simulation.machines.allocator_declaration import ALLOCATORS
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.interface import JobRequest, Machine, NodeState, has_places
from simulation.schedulers.planner import placements_conflict

pytestmark = pytest.mark.loops

BOXES = [one.name for one in ALLOCATORS.listed() if one.declaration and issubclass(one.declaration.make, BoxPolicy)]
LINES = [name for name in ALLOCATORS.names() if name not in BOXES]
CASES = [("angara-4x4x2", name) for name in BOXES] + [("bgl-half", name) for name in LINES]


def fill(machine: Machine, seed: int) -> list[tuple[int, ...]]:
    """Jobs come and go; every decision is looked at. Returns the origins."""
    draw = random.Random(seed)
    running: list[int] = []
    origins = []
    for number in range(1, 120):
        if running and draw.random() < 0.4:
            machine.release(running.pop(draw.randrange(len(running))))
        size = draw.choice((1, 2, 3, 4, 6, 8, 12, 16))
        if machine.traits.chooses_shapes:
            request = JobRequest(number, size)
        else:
            shape = draw.choice(((1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 1, 2)))
            request = JobRequest(number, shape[0] * shape[1] * shape[2], shape)
        placement = machine.place(request)
        assert machine.place(request) == placement, "the same state gives the same place"
        assert machine.copy().place(request) == placement
        if placement is None:
            continue
        assert placement.size >= request.size
        assert placement.nodes.bit_count() == placement.size
        assert not any(placements_conflict(placement, other) for other in machine.running.values())
        assert all(machine.node_state(unit) is NodeState.IDLE for unit in range(64) if placement.nodes >> unit & 1)
        machine.allocate(placement)
        running.append(number)
        origins.append(placement.origin)
    return origins


@pytest.mark.parametrize(("machine", "name"), CASES)
def test_places_are_free_large_enough_and_always_the_same(machine: str, name: str) -> None:
    first = fill(load_machine(machine, allocator=name), seed=3)
    assert len(first) > 30
    assert fill(load_machine(machine, allocator=name), seed=3) == first


@pytest.mark.parametrize(("machine", "name"), CASES)
def test_what_fits_an_empty_machine_is_placed_there(machine: str, name: str) -> None:
    empty = load_machine(machine, allocator=name)
    for size in range(1, empty.capacity + 1):
        request = JobRequest(1, size)
        assert (empty.place(request) is not None) == empty.fits_ever(request)
    assert empty.place(JobRequest(1, 1)) is not None


@pytest.mark.parametrize("name", [*machine_names(), "flat:64"])
def test_every_machine_answers_for_itself(name: str) -> None:
    machine = load_machine(name)
    traits = machine.traits
    assert traits.unit_noun
    assert traits.has_places != traits.interchangeable
    twin = machine.copy()
    placement = twin.place(JobRequest(1, 2))
    assert placement is not None
    twin.allocate(placement)
    assert (twin.free, machine.free) == (machine.capacity - 2, machine.capacity)
    everything = JobRequest(2, machine.capacity)
    assert twin.place(everything) is None
    assert list(twin.running) == [1]
    assert list(machine.running) == []
    twin.release(1)
    assert twin.place(everything) == machine.place(everything)
    assert twin.free == machine.free
    if has_places(machine):
        assert machine.hostlist(placement.nodes).startswith(machine.prefix)
        assert placement.nodes.bit_count() == placement.size
    assert bool(placement.links) == traits.exclusive_cables
    assert twin.describe(placement)["nodes"]
