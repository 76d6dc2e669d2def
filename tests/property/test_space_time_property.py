"""Tables of what is taken when: planning many jobs at once, giving bookings back, and the search for a window."""

import tomllib
from functools import cache
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machine_files import load_machine
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.description import build_machine
from simulation.machines.grid import units_of
from simulation.machines.interface import Connection, GridMachine, JobRequest, NodeState, Placement, has_places
from simulation.planning.placers import placer_of
from simulation.planning.space_time import Floors, SpaceTime
from tests.reference.bluegene_loop import cables_of

pytestmark = pytest.mark.loops

NOW = 7
SIZES = (1, 2, 3, 4, 8, 16, 32)


def machine_of(name: str) -> GridMachine:
    machine = load_machine(name)
    assert has_places(machine)
    return machine


@st.composite
def wishes(draw: st.DrawFn, most: int = 30) -> list[tuple[JobRequest, int]]:
    return [
        (
            JobRequest(number, draw(st.sampled_from(SIZES)), connection=draw(st.sampled_from(list(Connection)))),
            draw(st.integers(1, 20)),
        )
        for number in range(draw(st.integers(1, most)))
    ]


def same(one: SpaceTime, other: SpaceTime, times: range) -> bool:
    return all((one.taken_over(time, time + 1) == other.taken_over(time, time + 1)).all() for time in times)


@pytest.mark.parametrize("name", ["bgl-half", "angara-4x4x2"])
@settings(max_examples=examples(40))
@given(wanted=wishes(), parts=st.integers(0, 30))
def test_planning_at_once_is_one_earliest_start_after_another(
    name: str, wanted: list[tuple[JobRequest, int]], parts: int
) -> None:
    """In one go or in two, with floors or without: the same begins, and the same is taken at all times."""
    machine = machine_of(name)
    at_once, one_by_one = (SpaceTime(placer_of(machine), NOW) for _ in range(2))
    floors = Floors()
    begins: list[int] = []
    for part in (wanted[:parts], wanted[parts:]):
        begins += at_once.plan([request for request, _ in part], [length for _, length in part], floors).tolist()
    for (request, length), begin in zip(wanted, begins, strict=True):
        found = one_by_one.earliest(request, length, NOW)
        assert (-1 if found is None else found[0]) == begin
        if found is not None:
            one_by_one.book(begin, begin + length, found[1])
    assert same(at_once, one_by_one, range(NOW, max(begins, default=NOW) + 25))


@pytest.mark.parametrize("name", ["bgl-half", "angara-4x4x2"])
@settings(max_examples=examples(40))
@given(wanted=wishes(), kept=st.sets(st.integers(0, 29)))
def test_what_is_given_back_is_as_if_it_had_never_been_booked(
    name: str, wanted: list[tuple[JobRequest, int]], kept: set[int]
) -> None:
    machine = machine_of(name)
    changed, plain = (SpaceTime(placer_of(machine), NOW) for _ in range(2))
    bookings: list[tuple[int, int, Placement]] = []
    for request, length in wanted:
        found = changed.earliest(request, length, NOW)
        if found is not None:
            bookings.append((found[0], found[0] + length, found[1]))
            changed.book(*bookings[-1])
    for index, booking in enumerate(bookings):
        if index not in kept:
            changed.cancel(*booking)
    plain.book_all([booking for index, booking in enumerate(bookings) if index in kept])
    end = max((end for _, end, _ in bookings), default=NOW)
    assert same(changed, plain, range(NOW, end + 2))
    times, units = changed.levels()
    unit_words = placer_of(machine).unit_words
    for time, taken in zip(times.tolist(), units.tolist(), strict=True):
        assert taken == units_of(changed.taken_over(time, time + 1)[:unit_words]).bit_count()


@given(notes=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12), st.integers(0, 20)), max_size=30))
def test_floors_answer_what_a_list_of_all_that_was_noted_does(notes: list[tuple[int, int, int]]) -> None:
    floors = Floors()
    kinds = [JobRequest(number, size) for number, size in enumerate((1, 2, 4))]
    known: list[tuple[int, int, int]] = []

    def floor(kind: int, length: int) -> int:
        return max((begin for other, noted, begin in known if other == kind and noted <= length), default=-5)

    for kind, length, begin in notes:
        begin = max(begin, floor(kind, length))  # as a search from the floor on would find it
        floors.note(kinds[kind].kind, length, begin)
        known.append((kind, length, begin))
        for asked in range(14):
            for other in range(3):
                assert floors.floor(kinds[other].kind, asked, -5) == floor(other, asked)


CABLED = """
name = "small"
kind = "cabled-torus"
prefix = "sml"
[[dimension]]
name = "x"
width = 4
cables = ["0.2>1.5", "1.2>2.5", "2.2>3.5", "3.2>0.5", "1.4>0.3", "2.4>3.3", "3.4>2.3"]
[[dimension]]
name = "y"
ring = [0, 1]
[[dimension]]
name = "z"
ring = [0, 1]
"""
ANGARA = """
name = "small"
kind = "angara-torus"
prefix = "sml"
extents = [3, 2, 2]
dimension_names = ["x", "y", "z"]
allocator = "find-systems"
"""
MACHINES = {"cables": CABLED, "angara": ANGARA}


@cache
def built(kind: str) -> GridMachine:
    machine = build_machine(tomllib.loads(MACHINES[kind]), source="test")
    assert has_places(machine)
    return machine


def request_of(draw: Any, kind: str, job_id: int = 0) -> JobRequest:
    extents = built(kind).extents
    connection = draw(st.sampled_from([Connection.MESH, Connection.TORUS])) if kind == "cables" else Connection.MESH
    if draw(st.booleans()):
        shape = tuple(draw(st.integers(1, extent)) for extent in extents)
        size = shape[0] * shape[1] * shape[2]
        return JobRequest(job_id, size, shape, connection=connection)
    return JobRequest(job_id, draw(st.sampled_from([1, 2, 3, 4, 6, 8])), connection=connection)


@pytest.mark.parametrize("kind", MACHINES)
@given(data=st.data())
@settings(max_examples=examples(60))
def test_the_search_finds_the_earliest_window_that_a_plain_one_finds(kind: str, data: st.DataObject) -> None:
    machine = built(kind).copy()
    space_time = SpaceTime(placer_of(machine), 10)
    bookings: list[tuple[int, int, Placement]] = []
    for number in range(data.draw(st.integers(0, 12))):
        placement = machine.place(request_of(data.draw, kind, number))
        if placement is None:
            continue
        if data.draw(st.booleans()):
            machine.allocate(placement)  # so that places differ; bookings may overlap all the same
        begin = data.draw(st.integers(0, 60))
        end = begin + data.draw(st.integers(1, 40))
        bookings.append((begin, end, placement))
        space_time.book(begin, end, placement)
    request = request_of(data.draw, kind, 99)
    length = data.draw(st.integers(1, 50))
    not_before = data.draw(st.integers(10, 80))
    latest = data.draw(st.sampled_from([not_before, not_before + 10, 1000]))
    found = space_time.earliest(request, length, not_before, latest)
    assert (None if found is None else found[0]) == plain_earliest(kind, bookings, request, length, not_before, latest)
    if found is not None:
        chosen = found[1]
        for begin, end, placement in bookings:
            if max(begin, 10) < found[0] + length and found[0] < end:
                assert not placement.nodes & chosen.nodes
                assert not {*cables_of(placement)} & {*cables_of(chosen)}


def plain_earliest(
    kind: str,
    bookings: list[tuple[int, int, Placement]],
    request: JobRequest,
    length: int,
    not_before: int,
    latest: int,
) -> int | None:
    """Every time at which something ends, one after another, on a machine where all of the window's bookings run."""
    times = sorted({not_before} | {end for _, end, _ in bookings if end > not_before})
    for time in times:
        if time > latest:
            return None
        empty = built(kind).copy()
        union = [placement for begin, end, placement in bookings if begin < time + length and time < end]
        units = 0
        for placement in union:
            units |= placement.nodes
            for dimension, line, label in cables_of(placement):
                assert isinstance(empty, BlueGene)
                empty.fail_links(dimension, line, [label])
        empty.set_node_state(units, NodeState.DRAINED)
        if empty.place(request) is not None:
            return time
    return None
