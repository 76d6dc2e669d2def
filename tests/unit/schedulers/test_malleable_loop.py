"""The loop of `examples/studies/malleable_logs.py`: EASY where nothing is malleable, and what every strategy keeps."""

from pathlib import Path

import numpy as np
import pytest

from ramp.declarations import load_file
from simulation.malleable.malleability import DowneyLaw
from simulation.schedulers.compiled.easy import easy

LOOP = load_file(Path(__file__).parents[3] / "examples" / "studies" / "malleable_logs.py")
OTHERS = (LOOP.MINIMUM, LOOP.PREFERRED, LOOP.AVERAGE_POOL, LOOP.AVERAGE_STEAL, LOOP.MARGINAL_GAIN)

pytestmark = pytest.mark.slow  # the loop takes a while to be compiled
CAPACITY = 40
SECOND = 1_000_000


def drawn(seed: int, share: float, count: int = 150) -> dict:
    """Jobs that keep the machine full, some of no length, some with poor requests."""
    draw = np.random.default_rng(seed)
    size = draw.integers(1, 20, count)
    requested = draw.integers(1, 400, count) * SECOND
    malleable = draw.random(count) < share
    average = np.maximum(1.0, size * 2 ** draw.uniform(0, 2, count))
    variance = draw.uniform(0, 2, count)
    return {
        "submit": np.sort(draw.integers(0, 5000, count)) * SECOND,
        "duration": (requested * draw.choice([0, 0.3, 1.0], count)).astype(np.int64),
        "requested": requested,
        "preferred": size,
        "minimum": np.where(malleable, -(-size // 4), size),
        "maximum": np.where(malleable, np.minimum(4 * size, CAPACITY), size),
        "average": average,
        "variance": variance,
        "believed_average": average,
        "believed_variance": variance,
    }


@pytest.mark.parametrize("seed", range(5))
def test_without_malleable_jobs_it_is_easy(seed: int) -> None:
    """Start by start the schedule of the loop for rigid jobs, which is checked against definitions elsewhere."""
    jobs = drawn(seed, 0)
    start, end, _, changes, _ = LOOP.easy_malleable(*jobs.values(), CAPACITY, LOOP.RIGID, False)
    plain = easy(jobs["submit"], jobs["duration"], jobs["requested"], jobs["preferred"], CAPACITY)
    assert start.tolist() == plain.tolist()
    assert (end - start == jobs["duration"]).all()
    assert changes == 0


@pytest.mark.parametrize("strategy", OTHERS)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_what_every_strategy_keeps(strategy: int, share: float) -> None:
    """Never more than the machine, every size within its limits, and of every job exactly its work is done."""
    jobs = drawn(7, share)
    start, end, area, changes, told = LOOP.easy_malleable(*jobs.values(), CAPACITY, strategy, True)
    assert (start >= jobs["submit"]).all()
    history: dict[int, list[tuple[int, int]]] = {}
    for job, time, size in told:
        assert jobs["minimum"][job] <= size <= jobs["maximum"][job]
        history.setdefault(job, []).append((time, size))
    assert changes == sum(len(sizes) - 1 for sizes in history.values()) > 0
    moments: dict[int, int] = {}
    for job, sizes in history.items():
        law = DowneyLaw(jobs["average"][job], jobs["variance"][job])
        ends = [*(time for time, _ in sizes[1:]), int(end[job])]
        assert sizes[0][0] == start[job]
        done = held = 0.0
        for (begin, size), until in zip(sizes, ends, strict=True):
            done += (until - begin) * law.speed_up(size) / law.speed_up(jobs["preferred"][job])
            held += (until - begin) * size
            moments[begin] = moments.get(begin, 0) + size
            moments[until] = moments.get(until, 0) - size
        assert held == pytest.approx(area[job])
        # each change rounds the rest up to a microsecond
        assert done == pytest.approx(jobs["duration"][job], abs=4.0 * (len(sizes) + 1))
    taken = 0
    for moment in sorted(moments):
        taken += moments[moment]
        assert 0 <= taken <= CAPACITY


def test_malleability_shortens_the_turnaround() -> None:
    """On a machine that is full, under every strategy; ours the most (the study's finding, and our goal)."""
    means = {}
    for strategy in (LOOP.RIGID, *OTHERS):
        totals = []
        for seed in range(6):
            jobs = drawn(seed, 0.0 if strategy == LOOP.RIGID else 1.0, 300)
            _, end, _, _, _ = LOOP.easy_malleable(*jobs.values(), CAPACITY, strategy, False)
            totals.append(float((end - jobs["submit"]).mean()))
        means[strategy] = sum(totals) / len(totals)
    assert all(means[strategy] < means[LOOP.RIGID] for strategy in means if strategy != LOOP.RIGID)
    assert means[LOOP.MARGINAL_GAIN] == min(means.values())


def test_speed_ups_are_downeys() -> None:
    """The compiled function and the law, which is tested against the publication."""
    for average, variance in ((1.0, 0.0), (7.5, 0.4), (12.0, 1.0), (20.0, 1.7)):
        law = DowneyLaw(average, variance)
        assert [LOOP.speed_up(n, average, variance) for n in range(1, 60)] == [law.speed_up(n) for n in range(1, 60)]
