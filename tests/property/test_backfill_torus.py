"""Every scheduler on a machine with places and cables, with and without advance reservations.

The checks are made on what was handed out, by coordinates and cables, not by asking the machine or the plan.
"""

import itertools
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simulation.experiments.bluegene.runs import break_cables
from simulation.machine_files import load_machine
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Connection, JobRequest, Machine, NodeState, Placement
from simulation.queueing.outages import Outage
from simulation.queueing.queue_simulation import EndedJob, EndReason, Overrun, QueueSimulation
from simulation.schedulers.declaration import SCHEDULERS, make_scheduler
from simulation.schedulers.interface import AdvanceReservation, Job, Scheduler, Site
from simulation.schedulers.policies.conservative import ConservativeBackfill
from simulation.schedulers.policies.easy import EasyBackfill
from tests.queue_runs import ended_jobs
from tests.reference.backfill_loops import PlainConservative, PlainEasy
from tests.reference.bluegene_loop import cables_of

pytestmark = pytest.mark.loops

SHAPES = ((1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 2, 2), (3, 3, 1), (8, 2, 2), (4, 4, 4))
BGL = load_machine("bgl")


@dataclass(frozen=True)
class Wish:
    """A reservation asked for before the first job."""

    begin: int
    length: int
    shape: tuple[int, int, int]
    torus: bool


def job_of(
    number: int, submitted: int, run_time: int, requested: int, shape: tuple[int, int, int], connection: Connection
) -> Job:
    request = JobRequest(number, math.prod(shape), shape, connection=connection)
    return Job(number, submitted, run_time, requested, request)


@st.composite
def histories(draw: st.DrawFn) -> list[Job]:
    jobs = []
    for number in range(1, draw(st.integers(2, 16)) + 1):
        shape = draw(st.sampled_from(SHAPES))
        connection = draw(st.sampled_from([Connection.MESH, Connection.TORUS]))
        requested = draw(st.integers(1, 30))
        jobs.append(job_of(number, draw(st.integers(0, 40)), draw(st.integers(0, 40)), requested, shape, connection))
    return sorted(jobs, key=lambda job: (job.submit_time, job.job_number))


wishes = st.lists(
    st.builds(Wish, st.integers(0, 60), st.integers(1, 25), st.sampled_from(SHAPES[2:]), st.booleans()), max_size=3
)


def run_history(
    machine: Machine, name: str, jobs: list[Job], asked: list[Wish], overrun: Overrun
) -> tuple[list[EndedJob], list[AdvanceReservation], QueueSimulation]:
    ended: list[EndedJob] = []
    simulation = QueueSimulation(machine, make_scheduler(name), overrun=overrun, on_end=ended.append)
    granted = []
    for wish in asked:
        connection = Connection.TORUS if wish.torus else Connection.MESH
        request = JobRequest(-1, math.prod(wish.shape), wish.shape, connection=connection)
        reservation = simulation.reserve(request, wish.begin, wish.length)
        if reservation is not None:
            granted.append(reservation)
    for job in jobs:
        simulation.submit(job)
    simulation.run()
    return ended, granted, simulation


def things(placement: Placement) -> set[tuple[object, ...]]:
    """Midplanes and cables, one by one."""
    return {*itertools.product(*placement.members), *cables_of(placement)}


@pytest.mark.parametrize("overrun", list(Overrun))
@pytest.mark.parametrize("name", SCHEDULERS.names())
@settings(max_examples=examples(25))
@given(jobs=histories(), asked=wishes)
def test_nothing_is_held_twice(name: str, overrun: Overrun, jobs: list[Job], asked: list[Wish]) -> None:
    """No midplane and no cable belongs to two holders at a time, and reservations are kept to the microsecond.

    Every job runs once, from its submission on, as long as it should; only a job that has outrun its request may be
    ended by a reservation.
    """
    ended, granted, simulation = run_history(BGL.copy(), name, jobs, asked, overrun)
    assert sorted(one.job.job_number for one in ended) == [
        job.job_number for job in sorted(jobs, key=lambda j: j.job_number)
    ]
    assert not simulation.machine.running
    spans = [(one.start_time, one.end_time, things(one.placement)) for one in ended]
    spans += [(one.begin_time, one.end_time, things(one.placement)) for one in granted]
    for (begin, end, held), (other_begin, other_end, other_held) in itertools.combinations(spans, 2):
        if begin < other_end and other_begin < end:
            assert not held & other_held
    for one in ended:
        length = one.end_time - one.start_time
        assert one.start_time >= one.job.submit_time
        if one.reason is EndReason.COMPLETED:
            assert length == one.job.run_time
        elif one.reason is EndReason.REQUESTED_TIME_OVER:
            assert overrun is Overrun.CUT
            assert length == one.job.requested_time < one.job.run_time
        else:
            assert overrun is Overrun.KEEP
            assert length >= one.job.requested_time
            assert one.end_time in {reservation.begin_time for reservation in granted}


@settings(max_examples=examples(40))
@given(jobs=histories())
def test_conservative_keeps_its_promises_on_a_torus(jobs: list[Job]) -> None:
    """A start once promised is never put off as long as jobs end within their requests."""
    starts: dict[int, int] = {}
    scheduler = ConservativeBackfill()
    simulation = QueueSimulation(
        BGL.copy(), scheduler, on_end=lambda ended: starts.__setitem__(ended.job.job_number, ended.start_time)
    )
    for job in jobs:
        simulation.submit(job)
    promises: dict[int, int] = {}
    while simulation.step():
        for job in simulation.waiting:
            promise = scheduler.promise(job)
            assert promise is not None
            assert promise[0] <= promises.get(job.job_number, promise[0])
            promises[job.job_number] = promise[0]
    assert all(starts[number] <= promised for number, promised in promises.items())


@pytest.mark.parametrize("overrun", list(Overrun))
@pytest.mark.parametrize("name", SCHEDULERS.names())
@settings(max_examples=examples(30))
@given(data=st.data())
def test_reservations_on_a_flat_machine_are_never_short(name: str, overrun: Overrun, data: st.DataObject) -> None:
    """Counted second by second, jobs and reservations together never exceed the processors."""
    capacity = data.draw(st.integers(2, 8))
    count = data.draw(st.integers(1, 10))
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 20), st.integers(0, 15), st.integers(1, 12), st.integers(1, capacity)),
            min_size=count,
            max_size=count,
        )
    )
    asked = data.draw(
        st.lists(st.tuples(st.integers(0, 30), st.integers(1, 15), st.integers(1, capacity)), min_size=1, max_size=3)
    )
    ended: list[EndedJob] = []
    simulation = QueueSimulation(FlatMachine(capacity), make_scheduler(name), overrun=overrun, on_end=ended.append)
    reserved: list[tuple[int, int, int]] = []
    for begin, length, size in asked:
        free = min(
            capacity - sum(taken for low, high, taken in reserved if low <= second < high)
            for second in range(begin, begin + length)
        )
        granted = simulation.reserve(JobRequest(-1, size), begin, length)
        assert (granted is not None) == (size <= free)
        if granted is not None:
            reserved.append((begin, begin + length, size))
    for number, (submit, run, requested, size) in enumerate(rows, start=1):
        simulation.submit(Job(number, submit, run, requested, JobRequest(number, size)))
    simulation.run()
    assert len(ended) == count
    for second in range(max(one.end_time for one in ended) + 1):
        taken = sum(one.placement.size for one in ended if one.start_time <= second < one.end_time)
        taken += sum(size for begin, end, size in reserved if begin <= second < end)
        assert taken <= capacity


def starts_of(
    scheduler: Scheduler, jobs: list[Job], overrun: Overrun = Overrun.CUT, machine: Machine = BGL, **options: Any
) -> set[tuple[int, Placement]]:
    return {
        (one.start_time, one.placement)
        for one in ended_jobs(machine.copy(), scheduler, jobs, overrun=overrun, **options)
    }


@settings(max_examples=examples(30))
@given(jobs=histories())
def test_conservative_starts_jobs_when_and_where_its_definition_does(jobs: list[Job]) -> None:
    assert starts_of(ConservativeBackfill(), jobs) == starts_of(PlainConservative(), jobs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_conservative_keeps_to_its_definition_in_a_long_queue(seed: int) -> None:
    """Forty jobs of which most end early: whatever compression does not look at again could not have been had."""
    chosen = random.Random(seed)
    jobs = []
    for number in range(1, 41):
        shape = chosen.choice(SHAPES)
        requested = chosen.randrange(1, 200)
        run_time = max(1, int(requested * chosen.choice([0.1, 0.5, 1])))
        connection = chosen.choice([Connection.MESH, Connection.TORUS])
        jobs.append(job_of(number, chosen.randrange(61), run_time, requested, shape, connection))
    assert starts_of(ConservativeBackfill(), jobs) == starts_of(PlainConservative(), jobs)


class EasyByPlan(EasyBackfill):
    """EASY as it decides around reservations, which knows nothing of the two states."""

    def _backfill_between_cables(self, site: Site, machine: BlueGene, head: Job) -> None:
        self._backfill_by_plan(site, head)


outages = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 127)), max_size=4).map(
    lambda drawn: [Outage(1 << unit, NodeState.DOWN, begin, begin + 5) for begin, unit in sorted(drawn)]
)
#: At 40 the first job, alone by then, loses a midplane and starts elsewhere at once; at 45 a promise rests on that.
MOVED = [
    job_of(number, submitted, run_time, run_time, (4, 4, width), Connection.MESH)
    for number, (submitted, run_time, width) in enumerate(
        [(0, 100, 4), (0, 20, 2), (0, 10, 4), (0, 5, 2), (45, 10, 2), (45, 10, 4), (45, 50, 2)], start=1
    )
]


@pytest.mark.parametrize("overrun", list(Overrun))
@settings(max_examples=examples(60))
@given(jobs=histories(), failures=outages)
@example(jobs=MOVED, failures=[Outage(1, NodeState.DOWN, 40, 45)])
def test_easy_starts_jobs_when_and_where_its_definition_does(
    overrun: Overrun, jobs: list[Job], failures: list[Outage]
) -> None:
    expected = starts_of(PlainEasy(), jobs, overrun, outages=failures)
    assert starts_of(EasyBackfill(), jobs, overrun, outages=failures) == expected
    assert starts_of(EasyByPlan(), jobs, overrun, outages=failures) == expected


@pytest.mark.slow
@pytest.mark.parametrize("overrun", list(Overrun))
@pytest.mark.parametrize("seed", range(12))
def test_easy_keeps_to_its_definition_in_a_long_queue(seed: int, overrun: Overrun) -> None:
    """A crowd on a machine with broken cables: jobs of all lengths, early and late, some content with either joint."""
    chosen = random.Random(seed)
    machine = BGL.copy()
    assert isinstance(machine, BlueGene)
    break_cables(machine, chosen.choice([0, 0.02]), seed)
    machine.set_node_state(1 << chosen.randrange(128), NodeState.DRAINED)
    jobs = []
    for number in range(1, 121):
        shape = chosen.choice([each for each in SHAPES if each != (4, 4, 4)])
        requested = chosen.choice([10, 50, chosen.randrange(1, 200)])
        run_time = int(requested * chosen.choice([0, 0.1, 0.5, 1, 1, 3]))
        connection = chosen.choice(list(Connection))
        jobs.append(job_of(number, chosen.randrange(200), run_time, requested, shape, connection))
    assert starts_of(EasyBackfill(), jobs, overrun, machine) == starts_of(PlainEasy(), jobs, overrun, machine)
