"""`ramp simulate --malleable-share` on small logs: what is worked, told, written and drawn."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ramp.errors import ConfigurationError
from simulation.simulated_run import simulate as simulate_log
from simulation.workload.swf import read_swf
from tests.queue_runs import write_log
from tests.unit.cli.test_cli_simulate import call as call_simulate


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """One job of 8 units for 1000 s."""
    return write_log(tmp_path / "lone.swf", (0, 1000, 8, 1000))


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A job of 8 units for 1000 s; after 100 s one comes that needs the whole machine of 64."""
    return write_log(tmp_path / "pair.swf", (0, 1000, 8, 1000), (100, 50, 64, 50))


call = partial(call_simulate, scheduler="malleable")


def downey(processors: int, average: float, sigma: float) -> float:
    """Speed-up by A. B. Downey's model, worked out here once more."""
    if sigma <= 1:
        if processors <= average:
            return average * processors / (average + sigma * (processors - 1) / 2)
        if processors <= 2 * average - 1:
            return average * processors / (sigma * (average - 0.5) + processors * (1 - sigma / 2))
        return average
    if processors <= average + average * sigma - sigma:
        return processors * average * (sigma + 1) / (sigma * (processors + average - 1) + average)
    return average


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_lone_job_runs_at_four_times_its_size_as_fast_as_its_law_says(seed: int, lone: Path) -> None:
    """1000 s at 8 units; from its start on it has 32. The law is read off the drawn object, the formula is our own."""
    run = simulate_log(lone, machine="flat:64", scheduler="malleable", malleable_share=1.0, seed=seed)
    law = run.ended[0].job.malleability.law
    assert 8 <= law.average <= 32
    expected = 1000 * downey(8, law.average, law.variance) / downey(32, law.average, law.variance)
    assert run.jobs["end_s"][0] == pytest.approx(expected, abs=2e-6)
    assert (run.jobs["size"][0], run.jobs["held"][0]) == (32, 32)
    assert run.metrics.ended_at_request == 0


def test_without_a_share_and_with_none_malleable_all_is_as_ever(pair: Path) -> None:
    """The plain run, and one with share 0, to the microsecond; only the second speaks of malleable jobs."""
    plain = simulate_log(pair, machine="flat:64", scheduler="malleable")
    none = simulate_log(pair, machine="flat:64", scheduler="malleable", malleable_share=0.0)
    assert np.array_equal(plain.jobs, none.jobs)
    assert plain.malleable is None
    assert (none.malleable.jobs, none.malleable.mean_malleable_wait_s) == (0, None)


def test_the_assignment_is_stated_and_waits_are_told_apart(pair: Path) -> None:
    """In the object of --json, and under the table."""
    summary = json.loads(call(pair, "--malleable-share", 1, "--json").stdout)["malleable"]
    assert (summary["share"], summary["jobs"], summary["changed_jobs"], summary["resize_cost_s"]) == (1, 2, 1, 0)
    assert "minimum: a 4th of it, rounded up; maximum: 4 times it" in summary["sizes"]
    assert "Downey's model" in summary["speed_up"]
    assert summary["mean_rigid_wait_s"] is None
    assert summary["mean_malleable_wait_s"] > 0
    text = call(pair, "--malleable-share", 1).stdout
    assert "malleable_jobs" in text
    assert "a change of size costs 0 s" in text
    assert "average parallelism size x 2^U(0, 2)" in text


def test_a_resize_costs_what_is_said(pair: Path) -> None:
    """With one change at its start the job ends later by exactly what a change costs, for it grows to 32 in steps."""
    ends = {}
    for cost in (0, 60):
        run = simulate_log(pair, machine="flat:64", scheduler="malleable", malleable_share=1.0, resize_cost_s=cost)
        ends[cost] = run.jobs["end_s"][0]
    assert ends[60] == pytest.approx(ends[0] + 2 * 60, abs=1e-5)  # 8 to 16, and 16 to 32


def test_trace_log_and_pictures_follow_the_sizes(tmp_path: Path) -> None:
    """A job grows, a second one comes and it shrinks for it: segments in the trace, the mean in the log."""
    log = write_log(tmp_path / "three.swf", (0, 1000, 8, 1000), (50, 400, 48, 400))
    trace, swf, gantt, timeline = (tmp_path / name for name in ("t.jsonl", "out.swf", "gantt.png", "timeline.png"))
    told = call(
        log, "--malleable-share", 1, "--trace", trace, "--swf", swf, "--gantt", gantt, "--timeline", timeline, "--json"
    )
    assert json.loads(told.stdout)["malleable"]["changes"] >= 1
    lines = {line["job_number"]: line for line in map(json.loads, trace.read_text().splitlines()[1:])}
    segments = lines[1]["segments"]
    assert [each["start_time"] for each in segments[1:]] == [each["end_time"] for each in segments[:-1]]
    assert (segments[0]["start_time"], segments[0]["end_time"]) == (0, 50)
    written = read_swf(swf)
    notes = " ".join(written.header["Note"])
    assert "malleable with probability 1: 2 jobs" in notes
    assert "Downey's model" in notes
    assert "processors are the mean, rounded" in notes
    assert written.status.tolist() == [1, 1]  # the first one is faster than its run time in the log, and complete
    assert 8 < written.allocated_processors[0] < 32
    for picture in (gantt, timeline):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_scheduler_that_changes_no_size_says_so(pair: Path) -> None:
    """EASY runs malleable jobs as rigid ones."""
    told = call(pair, "--malleable-share", 1, "--json", scheduler="easy")
    assert "the scheduler easy does not resize jobs; use --scheduler malleable" in told.stderr
    plain = json.loads(call(pair, "--json", scheduler="easy").stdout)
    assert json.loads(told.stdout)["mean_wait_s"] == plain["mean_wait_s"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--resize-cost", 5), "resize-cost.*needs --malleable-share"),
        (("--malleable-share", 0.5, "--event-order", "pyss"), "needs the event order batch, got pyss"),
    ],
)
def test_what_does_not_go_together(arguments: tuple[object, ...], words: str, lone: Path) -> None:
    """Told with the option, before anything runs."""
    with pytest.raises(ConfigurationError, match=words):
        call(lone, *arguments, scheduler="easy")
    with pytest.raises(ConfigurationError, match="must be 0 to 1"):
        simulate_log(lone, machine="flat:64", malleable_share=1.5)
