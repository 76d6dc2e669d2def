"""Tables of what is taken when: planning many jobs at once, and giving bookings back."""

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machine_files import load_machine
from simulation.machines.grid import units_of
from simulation.machines.interface import Connection, GridMachine, JobRequest, Placement, has_places
from simulation.planning.placers import placer_of
from simulation.planning.space_time import Floors, SpaceTime

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
