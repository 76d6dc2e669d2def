"""A kept plan against planning all anew with the simulator's EASY, after every event of random histories."""

import random

import numpy as np
import pytest

from ramp.errors import ConfigurationError
from ramp.queue_bound.predictor import QueuedJob
from ramp.queue_bound.queue_plan import BLOCK, NEVER, Planner, QueuePlan, plan_starts
from simulation.queueing.compiled_plan import plan_starts as compiled_plan_starts
from simulation.queueing.followed_plan import FollowedPlan
from simulation.schedulers.compiled.easy import easy

pytestmark = pytest.mark.loops

CAPACITY = 16


class Reference:
    """A queue that plans by running the simulator's EASY on itself: nobody else comes, and all run to their ends."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[int, int]] = {}
        self.waiting: dict[int, QueuedJob] = {}

    def starts(self, now: int, *more: QueuedJob) -> list[int]:
        """Starts of the waiting jobs and of some that join the queue behind them."""
        sizes = [size for size, _ in self.running.values()]
        lengths = [end - now for _, end in self.running.values()]
        for job in (*self.waiting.values(), *more):
            sizes.append(job.size)
            lengths.append(job.length)
        length = np.array(lengths, np.int64)
        starts = easy(np.full(len(sizes), now), length, length, np.array(sizes), CAPACITY)
        return [int(start) for start in starts[len(self.running) :]]


@pytest.mark.parametrize(
    "planner",
    [
        pytest.param(plan_starts, id="plain"),
        # compiling it takes longer than all of these tests
        pytest.param(compiled_plan_starts, id="compiled", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("seed", range(20))
def test_a_kept_plan_is_the_plan_made_anew(planner: Planner, seed: int) -> None:
    """Jobs come in bursts, most end early, and the scheduler starts whom the reference would start now."""
    draw = random.Random(seed)
    plan, reference, true_end = FollowedPlan(CAPACITY, planner), Reference(), {}
    now = 0
    for number in range(80):
        now += draw.choice([0, 1, 1, 2, 5])
        for key in [key for key, end in true_end.items() if end <= now and key in reference.running]:
            plan.ended(key, now)
            del reference.running[key]
        for key in [key for key in reference.waiting if draw.random() < 0.03]:
            plan.withdrawn(key)
            del reference.waiting[key]
        if draw.random() < 0.75:
            shape = QueuedJob("", draw.randint(1, CAPACITY), draw.randint(1, 20))
            expected = reference.starts(now, shape)[-1]
            assert plan.earliest(shape, now) == expected
            assert plan.joined(number, shape, now) == expected
            reference.waiting[number] = shape
        starts = reference.starts(now)
        for key, start in list(zip(reference.waiting, starts, strict=True)):
            if start == now:
                shape = reference.waiting.pop(key)
                reference.running[key] = (shape.size, now + shape.length)
                # as a real clock would have it, an end comes at or before the time asked for
                true_end[key] = now + (shape.length if draw.random() < 0.3 else draw.randint(1, shape.length))
                plan.started(key, now)
        other = QueuedJob("", draw.randint(1, CAPACITY), draw.randint(1, 20))
        # from here on nothing happens in this instant: the ends of the next one come first
        if not any(end == now for end in true_end.values()):
            assert plan.earliest(other, now) == reference.starts(now, other)[-1]


def test_who_runs_on_is_given_twice_the_time() -> None:
    plan = FollowedPlan(4)
    plan.joined("a", QueuedJob("", 4, 10), 0)
    plan.started("a", 0)
    assert plan.earliest(QueuedJob("", 1, 1), 9) == 10
    assert plan.earliest(QueuedJob("", 1, 1), 10) == 20
    assert plan.earliest(QueuedJob("", 1, 1), 75) == 80
    plan.runs(1, 78)
    assert plan.earliest(QueuedJob("", 4, 1), 79) == 80


def test_a_queue_that_was_there_before() -> None:
    """Jobs that were never seen to wait, and on more processors than there are."""
    plan = QueuePlan(4)
    plan.runs(3, 100)
    plan.runs(3, 50)
    assert plan.earliest(QueuedJob("", 1, 1), 10) == 50
    assert plan.earliest(QueuedJob("", 4, 1), 10) == 100
    plan.runs(1, 120)
    assert plan.earliest(QueuedJob("", 4, 1), 60) == 120


@pytest.mark.parametrize("shape", [QueuedJob("", 0, 1), QueuedJob("", 5, 1), QueuedJob("", 1, 0)])
def test_what_is_no_job_for_the_machine(shape: QueuedJob) -> None:
    with pytest.raises(ValueError, match="size must be 1 to 4 processors"):
        QueuePlan(4).submit(shape, 0)


def test_a_job_comes_once() -> None:
    plan = FollowedPlan(4)
    plan.joined("a", QueuedJob("", 1, 1), 0)
    with pytest.raises(ValueError, match="is already submitted"):
        plan.joined("a", QueuedJob("", 1, 1), 0)


def test_a_machine_has_a_processor() -> None:
    with pytest.raises(ConfigurationError, match="at least 1 processor, got 0"):
        QueuePlan(0)


def test_who_ended_as_planned_is_gone_all_the_same() -> None:
    """What was planned up to the start of c tells nothing of the time in which a and c have ended."""
    plan = FollowedPlan(4)
    assert plan.joined("a", QueuedJob("", 3, 10), 0) == 0
    plan.started("a", 0)
    assert plan.joined("b", QueuedJob("", 2, 10), 0) == 10
    assert plan.joined("c", QueuedJob("", 1, 10), 0) == 0
    plan.started("c", 0)
    plan.ended("a", 10)
    plan.ended("c", 10)
    assert plan.joined("d", QueuedJob("", 4, 1), 10) == 20


@pytest.mark.parametrize("seed", range(5))
def test_a_queue_of_several_blocks(seed: int) -> None:
    """Jobs are passed over in blocks of 32; the plan is that of the simulator's scheduler, job by job."""
    draw, reference = random.Random(seed), Reference()
    ends = sorted(draw.randint(1, 30) for _ in range(3))
    reference.running = {key: (5, end) for key, end in enumerate(ends)}
    jobs = 4 * BLOCK - 5
    for key in range(100, 100 + jobs):
        reference.waiting[key] = QueuedJob("", draw.choice([1, 2, 3, 8, CAPACITY]), draw.randint(1, 40))
    size, length = (
        np.array([getattr(shape, field) for shape in reference.waiting.values()]) for field in ("size", "length")
    )
    start, room = np.full(jobs, -1), np.zeros(jobs, np.int64)
    held = np.concatenate([np.full(3, 5), room])
    decisions = np.empty((jobs + 4, 4), np.int64)
    made = plan_starts(0, 1, np.concatenate([ends, room]), held, 3, size, length, start, decisions)
    assert start.tolist() == reference.starts(0)
    assert decisions[made - 1].tolist() == [(start + length).max(), CAPACITY, NEVER, 0]
