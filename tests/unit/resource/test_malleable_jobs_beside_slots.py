"""A live machine that is sold while its own users' jobs change their size: both are in one plan."""

from collections.abc import Iterator
from random import Random

import pytest

from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.plugins.interface import PluginSettings
from simulation.machine_files import load_machine
from simulation.machines.interface import GridMachine, JobRequest, has_places
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes
from simulation.resource.background import Submission
from simulation.resource.live_machine import LiveMachine
from simulation.resource.modelled import open_plugin
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job
from simulation.schedulers.planner import placements_conflict
from simulation.schedulers.size_changes import given_back

pytestmark = pytest.mark.loops

NOW = from_iso("2026-11-21T08:00:00Z")
STEPS = 40


def _submissions(draw: Random, capacity: int) -> Iterator[Submission]:
    """Malleable jobs of up to half of the machine, one every quarter of an hour; some ask for longer than they run."""
    for number in range(1, 3 * STEPS):
        size = min(1 << draw.randrange(5), capacity // 2)
        run = draw.randrange(10, 120) * MINUTE
        sizes = Sizes(-(-size // 4), size, min(4 * size, capacity))
        malleability = Malleability(sizes, AmdahlLaw(draw.random() / 4, size))
        asked = run * draw.randrange(10, 16) // 10
        job = Job(number, number * 15 * MINUTE, run, asked, JobRequest(number, size), malleability)
        yield Submission(job, 1)


def _live(name: str) -> LiveMachine:
    machine = load_machine(name)
    assert has_places(machine)
    grid: GridMachine = machine
    return LiveMachine(grid, _submissions(Random(3), 32), scheduler=make_scheduler("malleable"))


def _sell(live: LiveMachine, draw: Random) -> bool:
    """Set the earliest place aside for a slot of some hours that begins within some, as quotes and holds do."""
    begin = live.now + draw.randrange(0, 5) * HOUR
    length = draw.randrange(1, 4) * HOUR
    request = JobRequest(-1, 1 << draw.randrange(4))
    found = live.outlook().space_time.earliest(request, length, begin, begin + 3 * HOUR)
    if found is None:
        return False
    start, placement = found
    assert live.why_taken(placement, start, start + length) == "", "what is quoted is free"
    live.reserve(placement, start, start + length)
    return True


def _in_the_way(live: LiveMachine) -> list[tuple[int, int]]:
    """Running jobs that hold, before their requests are over, what is reserved for then."""
    return [
        (number, reservation.number)
        for number, job in live.queue.running.items()
        for reservation in live.queue.reservations
        if reservation.begin_time < job.planned_end
        and live.now < reservation.end_time
        and placements_conflict(job.placement, reservation.placement)
    ]


@pytest.mark.parametrize("name", ["angara-4x4x2", "bgl"])
def test_jobs_change_their_size_around_slots_and_never_onto_one(name: str) -> None:
    live, draw = _live(name), Random(7)
    sold, changes = 0, set[tuple[int, int]]()
    for step in range(STEPS):
        live.advance(step * 30 * MINUTE)
        sold += _sell(live, draw)
        assert _in_the_way(live) == []
        for number, job in live.queue.running.items():
            changes |= {(number, each.end) for each in (() if job.changes is None else job.changes.segments)}
        assert step < 4 or live.queue.reservations, "something is reserved all the time"
    assert sold >= STEPS // 2
    assert len(changes) >= 20, "sizes change all the same"


def _kept(live: LiveMachine, number: int) -> int:
    """Units that a job keeps when what it has grown is sold."""
    queue = live.queue
    found = given_back(live.machine, queue.running, queue.reservations, live.now).get(number)
    return queue.running[number].placement.size if found is None else found.placement.size


def test_what_a_job_has_grown_is_sold_at_once_and_the_job_runs_on_at_the_size_that_it_prefers() -> None:
    """Four of 32 nodes are preferred, and all of them grown into."""
    machine = load_machine("angara-4x4x2")
    assert has_places(machine)
    malleability = Malleability(Sizes(1, 4, 32), AmdahlLaw(0, 4))
    job = Job(1, 0, 5 * HOUR, 5 * HOUR, JobRequest(1, 4), malleability)
    live = LiveMachine(machine, [Submission(job, 1)], scheduler=make_scheduler("malleable"))
    live.advance(MINUTE)
    (running,) = live.queue.running.values()
    assert running.placement.size == 32
    half = live.outlook().space_time.earliest(JobRequest(-1, 16), HOUR, live.now, live.now)
    assert half is not None, "all but four nodes are for sale now"
    begin, placement = half
    assert live.why_taken(placement, begin, begin + HOUR) == ""
    live.reserve(placement, begin, begin + HOUR)
    (running,) = live.queue.running.values()
    assert running.placement.size >= 4
    assert not running.placement.nodes & placement.nodes
    whole = live.outlook().space_time.earliest(JobRequest(-2, 32), MINUTE, live.now, live.now)
    assert whole is None, "what a job prefers is not for sale while it runs"
    live.advance(begin + 30 * MINUTE)
    assert [each.placement.size for each in live.queue.reservations] == [16]
    assert _in_the_way(live) == []


@pytest.mark.slow
def test_what_the_next_quote_finds_taken_is_what_jobs_hold_after_their_last_change() -> None:
    live, draw = _live("angara-4x4x2"), Random(7)
    changed = 0
    for step in range(2 * STEPS):
        live.advance(step * 15 * MINUTE)
        if step % 8 == 0:
            _sell(live, draw)
        times, taken = live.outlook().space_time.levels()
        now = [int(units) for time, units in zip(times, taken, strict=True) if time <= live.now][-1]
        held = sum(min(each.placement.size, _kept(live, number)) for number, each in live.queue.running.items())
        held += sum(each.placement.size for each in live.queue.reservations if each.begin_time <= live.now)
        planned = zip(live.outlook().jobs, live.outlook().begins.tolist(), strict=True)
        startable = sum(job.request.size for job, begin in planned if begin == live.now)
        assert now == held + startable
        changed += any(each.changes is not None for each in live.queue.running.values())
    assert changed > STEPS // 2


@pytest.mark.slow
def test_a_share_of_the_jobs_of_the_plugin_is_malleable_and_the_rest_of_its_workload_is_as_ever() -> None:
    def machine(**options: object) -> LiveMachine:
        given = {"machine": "angara-4x4x2", "load": 1.2, "base_time_s": 240_000, **options}
        return open_plugin(PluginSettings("live1", 512, 16, NOW, given, seed=5)).live

    rigid, half = machine(), machine(malleable_share=0.5, resize_cost_s=60)
    assert [(*live.queue.running, *(each.job_number for each in live.queue.waiting)) for live in (rigid, half)] == 2 * [
        (*rigid.queue.running, *(each.job_number for each in rigid.queue.waiting))
    ]
    all_jobs = [[*live.queue.waiting, *(each.job for each in live.queue.running.values())] for live in (rigid, half)]
    assert not any(each.malleability for each in all_jobs[0])
    malleable = [each.malleability for each in all_jobs[1] if each.malleability is not None]
    assert 0 < len(malleable) < len(all_jobs[1])
    assert {each.suspension for each in malleable} == {MINUTE}
