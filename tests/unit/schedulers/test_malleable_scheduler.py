"""Jobs that shrink for the first that waits and grow when nobody does; times by hand from the work of an ideal law."""

from typing import Any

import pytest

from simulation.machine_files import load_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import JobRequest, Machine
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes
from simulation.queueing.queue_simulation import EndedJob, Overrun, QueueSimulation
from simulation.schedulers.declaration import make_scheduler
from simulation.schedulers.interface import Job

pytestmark = pytest.mark.loops

SECOND = 1_000_000
IDEAL = AmdahlLaw(0, 1)
HALF = JobRequest(-1, 64, (4, 4, 4))


def job(
    number: int,
    submitted_s: int,
    size: int,
    run_s: int,
    sizes: tuple[int, int] | None = None,
    shape: tuple[int, ...] | None = None,
) -> Job:
    malleability = None
    if sizes is not None:
        malleability = Malleability(Sizes(sizes[0], size, sizes[1]), IDEAL)
    request = JobRequest(number, size, shape)
    return Job(number, submitted_s * SECOND, run_s * SECOND, run_s * SECOND, request, malleability)


def run(
    machine: Machine,
    *jobs: Job,
    grows: bool = True,
    reserved: tuple[JobRequest, int, int] | None = None,
    **options: Any,
) -> dict[int, EndedJob]:
    """Run jobs; something may be reserved from a second on, for some seconds."""
    ended: dict[int, EndedJob] = {}
    simulation = QueueSimulation(
        machine,
        make_scheduler("malleable", {"grows": grows}),
        on_end=lambda one: ended.update({one.job.job_number: one}),
        **{"overrun": Overrun.KEEP, **options},
    )
    if reserved is not None:
        wanted, begin, length = reserved
        assert simulation.reserve(wanted, begin * SECOND, length * SECOND) is not None
    for each in jobs:
        simulation.submit(each)
    simulation.advance(9_000 * SECOND)
    return ended


def sizes(ended: EndedJob) -> list[int]:
    return [segment.placement.size for segment in ended.segments]


def test_a_job_shrinks_for_who_waits_and_grows_again() -> None:
    """Of 400 unit-seconds 40 are done when it shrinks to one unit, 30 more when it has four again: 82.5 s are left."""
    ended = run(FlatMachine(4), job(1, 0, 4, 100, (1, 4)), job(2, 10, 3, 30))
    assert (ended[2].start_time, ended[2].end_time) == (10 * SECOND, 40 * SECOND)
    assert sizes(ended[1])[:2] == [4, 1]
    assert sizes(ended[1])[-1] == 4
    assert ended[1].end_time == 122_500_000


def test_a_job_grows_beyond_what_it_prefers_unless_told_not_to() -> None:
    assert run(FlatMachine(4), job(1, 0, 1, 100, (1, 4)))[1].end_time == 25 * SECOND
    assert run(FlatMachine(4), job(1, 0, 1, 100, (1, 4)), grows=False)[1].end_time == 100 * SECOND


def test_who_has_grown_gives_that_back_before_anybody_falls_below_what_it_prefers() -> None:
    """Job 1 has grown to three of four units; for a job of two it goes back to the one it prefers and no further."""
    ended = run(FlatMachine(4), job(1, 0, 1, 90, (1, 3)), job(2, 0, 1, 90), job(3, 10, 2, 10))
    assert ended[3].start_time == 10 * SECOND
    assert sizes(ended[2]) == [1]
    assert min(sizes(ended[1])) == 1


def test_nobody_shrinks_in_vain() -> None:
    """Four units are wanted, and a rigid job holds two of the four."""
    ended = run(FlatMachine(4), job(1, 0, 2, 50, (1, 2)), job(2, 0, 2, 60), job(3, 10, 4, 10))
    assert sizes(ended[1]) == [2]
    assert ended[3].start_time == 60 * SECOND


def _beside(begin_s: int, *jobs: Job) -> dict[int, EndedJob]:
    """Run jobs on Blue Gene/L of which half is reserved from then on, for a long time."""
    return run(load_machine("bgl"), *jobs, reserved=(HALF, begin_s, 9_999), overrun=Overrun.CUT)


def test_a_job_grows_only_as_far_as_what_is_reserved_for_later_leaves_to_it() -> None:
    """100 midplane-seconds: on all 128 over after 0.8 s, on the half that is not reserved after 1.6 s."""
    one = job(1, 0, 1, 100, (1, 128), (1, 1, 1))
    assert max(sizes(_beside(10, one)[1])) == 128
    kept = _beside(1, one)[1]
    assert max(sizes(kept)) == 64
    assert 1_562_500 <= kept.end_time <= 1_562_600, "64 steps, each rounded up by a microsecond at most"


def test_a_job_shrinks_for_one_that_waits_beside_what_is_reserved() -> None:
    """The half that is not reserved: a job of all of it gives half of that up; job 2 waits for no more than that."""
    wide, narrow = job(1, 0, 64, 100, (32, 64), (4, 4, 4)), job(2, 10, 32, 50, None, (4, 4, 2))
    ended = _beside(5, wide, narrow)
    assert ended[2].start_time == 10 * SECOND
    assert sizes(ended[1])[:2] == [64, 32]
    rigid = _beside(5, job(1, 0, 64, 100, None, (4, 4, 4)), narrow)
    assert rigid[2].start_time == 100 * SECOND


def test_a_job_does_not_shrink_where_it_would_run_on_into_what_is_reserved() -> None:
    """It would be over when all is reserved, but at half its size only 40 s later."""
    wide, narrow = job(1, 0, 128, 50, (64, 128), (8, 4, 4)), job(2, 10, 64, 5, None, (4, 4, 4))
    everything = JobRequest(-1, 128, (8, 4, 4))
    ended = run(load_machine("bgl"), wide, narrow, reserved=(everything, 60, 10), overrun=Overrun.CUT)
    assert sizes(ended[1]) == [128]
    assert ended[2].start_time == 50 * SECOND


def test_sizes_stay_while_something_is_reserved_on_a_machine_without_places() -> None:
    ended = run(FlatMachine(4), job(1, 0, 4, 100, (1, 4)), job(2, 10, 3, 30), reserved=(JobRequest(-1, 1), 1_000, 1))
    assert sizes(ended[1]) == [4]
    assert ended[2].start_time == 100 * SECOND


def test_on_a_torus_a_box_grows_by_planes() -> None:
    """A line of one midplane grows along its line to the four that it may have; each step rounds up a microsecond."""
    ended = run(load_machine("bgl"), job(1, 0, 1, 100, (1, 4), (1, 1, 1)))[1]
    assert 25 * SECOND <= ended.end_time <= 25 * SECOND + 3
    assert ended.placement.shape == (4, 1, 1)
    assert ended.placement.links[0]


def test_on_a_torus_a_box_shrinks_to_halves_of_its_longest_side() -> None:
    """All of the machine, and then half of it for a job of the other half."""
    ended = run(load_machine("bgl"), job(1, 0, 128, 100, (64, 128), (8, 4, 4)), job(2, 10, 64, 5, None, (4, 4, 4)))
    assert ended[2].start_time == 10 * SECOND
    assert sizes(ended[1])[:2] == [128, 64]
    assert ended[1].segments[1].placement.shape == (4, 4, 4)
