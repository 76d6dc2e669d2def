"""Histories of a live machine: nothing is ever held twice, and what is sold is kept."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.description import build_machine
from simulation.machines.grid import Grid, bits_of
from simulation.machines.interface import Connection, GridMachine, JobRequest, NodeState, Placement, has_places
from simulation.planning.placers import placer_of
from simulation.planning.space_time import SpaceTime
from simulation.queueing.queue_simulation import EndedJob, EndReason, Overrun
from simulation.resource.background import Submission
from simulation.resource.live_machine import LiveMachine
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job

pytestmark = pytest.mark.loops

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
SCHEDULERS = ("fcfs", "first-fit", "easy", "conservative")


def machine_of(kind: str) -> GridMachine:
    return _built(kind).copy()


@cache
def _built(kind: str) -> GridMachine:
    machine = build_machine(tomllib.loads(MACHINES[kind]), source="test")
    assert has_places(machine)
    return machine


@dataclass
class Held:
    """Something that held units and cables for a time."""

    what: str
    begin: int
    end: int
    units: frozenset[int]
    cables: frozenset[tuple[int, tuple[int, ...], int]]


def held(machine: GridMachine, what: str, placement: Placement, begin: int, end: int) -> Held:
    grid = Grid(machine.extents)
    units = frozenset(bits_of(placement.nodes))
    cables = set()
    for unit, (dimension, labels) in product(units, enumerate(placement.links)):
        place = grid.coordinates(unit)
        line = place[:dimension] + place[dimension + 1 :]
        cables |= {(dimension, line, label) for label in labels}
    return Held(what, begin, end, units, frozenset(cables))


def request_of(draw: Any, kind: str, job_id: int = 0) -> JobRequest:
    extents = machine_of(kind).extents
    connection = draw(st.sampled_from([Connection.MESH, Connection.TORUS])) if kind == "cables" else Connection.MESH
    if draw(st.booleans()):
        shape = tuple(draw(st.integers(1, extent)) for extent in extents)
        size = shape[0] * shape[1] * shape[2]
        return JobRequest(job_id, size, shape, connection=connection)
    return JobRequest(job_id, draw(st.sampled_from([1, 2, 3, 4, 6, 8])), connection=connection)


@st.composite
def submissions(draw: Any, kind: str) -> list[Submission]:
    found = []
    time = 0
    for number in range(1, draw(st.integers(1, 14)) + 1):
        time += draw(st.sampled_from([0, 1, 5, 20]))
        requested = draw(st.integers(1, 40))
        # some end early, some at their request, some outrun it far
        run = draw(st.sampled_from([1, max(1, requested // 2), requested, requested + 3, 4 * requested]))
        found.append(Submission(Job(number, time, run, requested, request_of(draw, kind, number)), None))
    return found


@dataclass
class History:
    machine: GridMachine
    holdings: list[Held] = field(default_factory=list)
    evicted: list[EndedJob] = field(default_factory=list)

    def ended(self, job: EndedJob) -> None:
        self.holdings.append(
            held(self.machine, f"job {job.job.job_number}", job.placement, job.start_time, job.end_time)
        )
        if job.reason is EndReason.RESERVATION_BEGAN:
            self.evicted.append(job)

    def check(self) -> None:
        for one, other in combinations(self.holdings, 2):
            if one.begin < other.end and other.begin < one.end:
                assert not one.units & other.units, (one, other)
                assert not one.cables & other.cables, (one, other)
        for job in self.evicted:
            assert job.end_time - job.start_time >= job.job.requested_time, "only what has outrun its request gives way"


@pytest.mark.parametrize("kind", MACHINES)
@given(data=st.data())
@settings(max_examples=examples(60))
def test_nothing_is_held_twice_whatever_ends_early_or_late(kind: str, data: st.DataObject) -> None:
    machine = machine_of(kind)
    history = History(machine)
    live = LiveMachine(
        machine,
        data.draw(submissions(kind)),
        scheduler=make_scheduler(data.draw(st.sampled_from(SCHEDULERS))),
        overrun=data.draw(st.sampled_from(list(Overrun))),
    )
    live.on_end = history.ended
    granted: dict[int, tuple[Placement, int, int]] = {}
    for _ in range(data.draw(st.integers(1, 15))):
        live.advance(live.now + data.draw(st.sampled_from([0, 1, 3, 10, 30])))
        if granted and data.draw(st.integers(0, 3)) == 0:
            number = data.draw(st.sampled_from(sorted(granted)))
            placement, begin, finish = granted.pop(number)
            live.cancel(number)
            if begin < live.now:
                history.holdings.append(held(machine, f"cancelled {number}", placement, begin, min(finish, live.now)))
            continue
        request = request_of(data.draw, kind)
        if not machine.fits_ever(request):
            continue
        length = data.draw(st.integers(1, 40))
        wanted_from = live.now + data.draw(st.sampled_from([0, 2, 15, 60]))
        found = live.outlook().space_time.earliest(request, length, wanted_from)
        assert found is not None, "an endless future has room for what fits the empty machine"
        begin, placement = found
        assert begin >= wanted_from
        assert live.why_taken(placement, begin, begin + length) == "", "what is quoted can be had"
        number = live.reserve(placement, begin, begin + length)
        granted[number] = (placement, begin, begin + length)
        if begin == live.now:
            assert number in machine.running, "what begins now has its units now"
        # the hold is seen by the very next quote
        again = live.outlook().space_time.earliest(request, length, begin, begin)
        if again is not None:
            assert not again[1].nodes & placement.nodes
    end = max([live.now, *(end for _, _, end in granted.values())])
    for number, (placement, begin, finish) in granted.items():
        history.holdings.append(held(machine, f"reservation {number}", placement, begin, finish))
    live.advance(end + 100_000)
    assert not live.reservations()
    assert not live.queue.running
    history.check()


@pytest.mark.parametrize("kind", MACHINES)
@given(data=st.data())
@settings(max_examples=examples(60))
def test_the_search_finds_the_earliest_window_that_a_plain_one_finds(kind: str, data: st.DataObject) -> None:
    machine = machine_of(kind)
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
        chosen = held(machine, "found", found[1], found[0], found[0] + length)
        for begin, end, placement in bookings:
            if max(begin, 10) < chosen.end and chosen.begin < end:
                other = held(machine, "booked", placement, begin, end)
                assert not other.units & chosen.units
                assert not other.cables & chosen.cables


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
        empty = machine_of(kind)
        union = [placement for begin, end, placement in bookings if begin < time + length and time < end]
        units = 0
        for placement in union:
            units |= placement.nodes
            for dimension, line, label in held(empty, "", placement, begin=0, end=1).cables:
                assert isinstance(empty, BlueGene)
                empty.fail_links(dimension, line, [label])
        empty.set_node_state(units, NodeState.DRAINED)
        if empty.place(request) is not None:
            return time
    return None
