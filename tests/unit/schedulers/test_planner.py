"""The plan: availability over time and space."""

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Connection, JobRequest, Placement
from simulation.planning.plan import Plan
from simulation.schedulers.planner import placements_conflict
from tests.reference.bluegene_loop import cables_of

pytestmark = pytest.mark.loops

BGL = load_machine("bgl")
SHAPES = ((1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1), (2, 2, 2), (3, 2, 1), (4, 1, 2), (8, 1, 1))


def request(number: int, shape: tuple[int, int, int], *, torus: bool = False) -> JobRequest:
    size = shape[0] * shape[1] * shape[2]
    connection = Connection.TORUS if torus else Connection.MESH
    return JobRequest(number, size, shape, connection=connection)


@settings(max_examples=examples(100))
@given(
    first=st.sampled_from(SHAPES),
    second=st.sampled_from(SHAPES),
    tori=st.tuples(st.booleans(), st.booleans()),
    before=st.lists(st.sampled_from(SHAPES), max_size=4),
)
def test_conflicts_are_shared_midplanes_or_cables(
    first: tuple[int, int, int],
    second: tuple[int, int, int],
    tori: tuple[bool, bool],
    before: list[tuple[int, int, int]],
) -> None:
    """Compared with sets of single midplanes and cables; placements come from machines in different states."""
    one = BGL.copy().place(request(1, first, torus=tori[0]))
    machine = BGL.copy()
    for number, shape in enumerate(before, start=10):
        placement = machine.place(request(number, shape))
        if placement is not None:
            machine.allocate(placement)
    other = machine.place(request(2, second, torus=tori[1]))
    if one is None or other is None:
        return
    expected = bool(one.nodes & other.nodes) or not {*cables_of(one)}.isdisjoint(cables_of(other))
    assert placements_conflict(one, other) == expected


def test_a_flat_gap_must_be_long_and_wide_enough() -> None:
    """10 processors: 6 held until 100, 5 booked from 150 to 250."""
    machine = FlatMachine(10)
    held = Placement(1, 6)
    machine.allocate(held)
    plan = Plan(machine, 0, [(1, 0, 100, held)])
    plan.book(2, 150, 250, Placement(2, 5))
    start = {
        (size, length): found[0]
        for size, length in ((4, 1000), (5, 50), (5, 51), (6, 50), (6, 51), (10, 50), (10, 51))
        if (found := plan.earliest(JobRequest(9, size), length)) is not None
    }
    assert start == {(4, 1000): 0, (5, 50): 100, (5, 51): 100, (6, 50): 100, (6, 51): 250, (10, 50): 100, (10, 51): 250}
    assert plan.earliest(JobRequest(9, 6), 51, latest=249) is None
    assert plan.fits_at(JobRequest(9, 6), 120, 30) is not None
    assert plan.fits_at(JobRequest(9, 6), 120, 31) is None
    plan.cancel(2)
    found = plan.earliest(JobRequest(9, 6), 51, not_before=110)
    assert found[0] == 110


def test_a_later_booking_is_stepped_around_where_there_is_another_place() -> None:
    """A 4x4x4 torus is booked for later in the machine's favourite place: a long job gets the other half now."""
    plan = Plan(BGL, 0, [])
    favourite = plan.fits_at(request(1, (4, 4, 4), torus=True), 0, 10)
    assert favourite is not None
    plan.book(1, 50, 100, favourite)
    short = plan.earliest(request(2, (4, 4, 4), torus=True), 50)
    long = plan.earliest(request(3, (4, 4, 4), torus=True), 51)
    whole = plan.earliest(request(4, (8, 4, 4)), 51)
    assert short is not None
    assert long is not None
    assert whole is not None
    assert (short[0], short[1].nodes) == (0, favourite.nodes)
    assert long[0] == 0
    assert not placements_conflict(long[1], favourite)
    assert whole[0] == 100


def test_planning_leaves_the_machine_alone() -> None:
    machine = BGL.copy()
    plan = Plan(machine, 0, [])
    found = plan.fits_at(request(1, (2, 2, 2)), 0, 10)
    assert found is not None
    plan.book(1, 0, 10, found)
    assert plan.fits_at(request(2, (8, 4, 4)), 5, 10) is None
    assert plan.earliest(request(2, (8, 4, 4)), 5) is not None
    assert machine.free == 128
    assert not machine.running
