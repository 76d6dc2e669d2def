"""Failing and drained units during a run, and the life of blocks; traces are checked by a reader of their own."""

import json
import re
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulation
from ramp.errors import ConfigurationError, DocumentError, MachineError
from simulation.machine_files import load_machine
from simulation.machines.interface import NodeState, has_places
from simulation.machines.view import view_of_trace
from simulation.queueing.outages import drawn_failures
from tests.queue_runs import write_log

BOOT = ((1, 180), (16, 360), (64, 600), (128, 900))
"""Of bgl-slurm.toml: midplanes and seconds; 10 s before, 300 s after."""


@cache
def cells_of(hostlist: str) -> set[str]:
    """Names of the midplanes of a host list of boxes, read without the product's parser."""
    found = set()
    for item in re.sub(r"^bgl\[?|\]$", "", hostlist).split(","):
        low, _, high = item.partition("x")
        axes = [range(int(a), int(b) + 1) for a, b in zip(low, high or low, strict=True)]
        found |= {"".join(map(str, cell)) for cell in product(*axes)}
    return found


def held(line: dict[str, Any]) -> set[tuple[str, ...]]:
    """Midplanes of a job, and its cables: dimension, the line's other two coordinates, label."""
    cells = cells_of(line["nodes"])
    found: set[tuple[str, ...]] = {(cell,) for cell in cells}
    for axis, name in enumerate("xyz"):
        for cell, label in product(cells, line["links"][name]):
            found.add((name, cell[:axis] + cell[axis + 1 :], str(label)))
    return found


def check(lines: list[dict[str, Any]], *, boots: bool) -> int:
    """Check a trace of Blue Gene; return the number of requeued runs."""
    jobs = [line for line in lines if "job_number" in line]
    outs = [line for line in lines if "out" in line]
    parts = {id(job): held(job) for job in jobs}
    for index, one in enumerate(jobs):
        for other in jobs[:index]:
            if one["start_time"] < other["end_time"] and other["start_time"] < one["end_time"]:
                assert parts[id(one)].isdisjoint(parts[id(other)]), (one, other)
        for out in outs:
            if cells_of(one["nodes"]) & cells_of(out["nodes"]):
                end = out["end_time"] or float("inf")
                assert not out["start_time"] <= one["start_time"] < end, (one, out)
                if out["out"] == "down":
                    assert not one["start_time"] < out["start_time"] < one["end_time"], (one, out)
        if boots:
            size = len(cells_of(one["nodes"]))
            boot = next(seconds for midplanes, seconds in BOOT if size <= midplanes)
            begin = min(one["start_time"] + 10, one["end_time"])
            assert one["boot_time"] == pytest.approx(begin)
            assert one["ready_time"] == pytest.approx(min(begin + boot, one["end_time"]))
            assert one["done_time"] == pytest.approx(one["end_time"] - (0 if "ended" in one else 300))
    runs: dict[int, list[dict[str, Any]]] = {}
    for job in jobs:
        runs.setdefault(job["job_number"], []).append(job)
    for each in runs.values():
        assert ["ended" in one for one in each] == [True] * (len(each) - 1) + [False]
        for before, after in pairwise(each):
            assert before["end_time"] == after["submit_time"] <= after["start_time"]
    return sum("ended" in job for job in jobs)


@pytest.mark.parametrize("scheduler", ["easy", "conservative", "fcfs", "first-fit"])
def test_no_block_holds_what_has_failed_or_is_taken(scheduler: str) -> None:
    run, again = (simulation.simulate("synthetic", machine="bgl-slurm", scheduler=scheduler, load=0.9, max_jobs=120,
                                      torus_probability=0.5, failures="8d:6h", seed=3) for _ in "12")  # fmt: skip
    lines = json.loads(json.dumps(list(run.trace)))
    requeued = check(lines, boots=True)
    assert requeued == run.metrics.requeued > 5
    assert len({line["job_number"] for line in lines if "job_number" in line}) == run.metrics.jobs == 120
    assert list(again.trace) == list(run.trace)


def outs(path: Path, *lines: tuple[str, str, int, int | None]) -> str:
    keys = ("out", "nodes", "start_time", "end_time")
    path.write_text("".join(json.dumps(dict(zip(keys, line, strict=True))) + "\n" for line in lines))
    return str(path)


def test_a_job_on_a_failed_midplane_starts_anew_and_one_on_a_drained_one_runs_on(tmp_path: Path) -> None:
    """By hand: two jobs of half the machine; the first loses bgl000 at 50 s and has to wait for its repair at 90 s."""
    log = write_log(tmp_path / "two.swf", (0, 100, 64, 100), (0, 100, 64, 100), (120, 10, 64, 10))
    failures = outs(
        tmp_path / "f.jsonl",
        ("down", "bgl000", 50, 90), ("drain", "bgl[002x733]", 60, 150), ("down", "bgl001", 60, 70),
    )  # fmt: skip
    run = simulation.simulate(log, machine="bgl", scheduler="easy", shape="fat", failures=failures)
    told = [
        (line["job_number"], line["submit_time"], line["start_time"], line["end_time"], line.get("ended"))
        for line in run.trace if "job_number" in line
    ]  # fmt: skip
    assert told == [
        (1, 0, 0, 50, "node_fail"), (2, 0, 0, 100, None), (3, 120, 150, 160, None), (1, 50, 90, 190, None),
    ]  # fmt: skip
    machine = load_machine("bgl")
    rows = [(n, line) for n, line in enumerate(run.trace, 1) if n > 1]
    at = {second: view_of_trace(machine, rows, second, "t") for second in (50, 65, 89, 90)}
    assert [view.down.bit_count() for view in at.values()] == [1, 2, 1, 0]
    assert [view.drained.bit_count() for view in at.values()] == [0, 64, 64, 64]
    assert [[job.state for job in view.jobs] for view in at.values()] == [["R", "PD"]] * 3 + [["R", "R"]]
    replayed = tmp_path / "trace.jsonl"
    run.write_trace(replayed)
    again = simulation.simulate(log, machine="bgl", scheduler="easy", shape="fat", failures=str(replayed))
    assert list(again.trace) == list(run.trace)
    lost = outs(tmp_path / "g.jsonl", ("down", "bgl000", 50, None))
    whole = write_log(tmp_path / "whole.swf", (60, 100, 128, 100))
    with pytest.raises(MachineError, match="bgl: with the units left in service 1 jobs never fit, first job 1"):
        simulation.simulate(whole, machine="bgl", scheduler="easy", shape="fat", failures=lost)


def test_failures_have_the_means_they_were_drawn_for() -> None:
    machine = load_machine("bgl")
    assert has_places(machine)
    day = 86_400_000_000
    drawn = drawn_failures(machine, 10 * day, day // 4, 0, 5)
    first = [next(drawn) for _ in range(4000)]
    lengths = np.array([each.end - each.begin for each in first if each.end is not None]) / day
    assert lengths.mean() == pytest.approx(0.25, rel=0.06)
    up = first[-1].begin / day * 128 - lengths.sum()
    assert up / len(first) == pytest.approx(10, rel=0.06)
    assert {each.state for each in first} == {NodeState.DOWN}


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("soon", ConfigurationError, "got 'soon', expected MTBF:REPAIR"),
        ("0d:4h", ConfigurationError, "failures: must be above 0"),
        ('{"out": "down", "nodes": "bgl000", "start_time": 1e400}', DocumentError, "line 1: .*infinity.*; expected"),
        ('{"out": "up", "nodes": "bgl000", "start_time": 1, "end_time": 2}', DocumentError, "line 1: 'up'; expected"),
        ('{"out": "down", "nodes": "bgl9", "start_time": 1, "end_time": 2}', DocumentError, "line 1: host list"),
        ('{"out": "down", "nodes": "bgl000", "start_time": 2, "end_time": 2}', DocumentError, "got 2 and 2; expected"),
    ],
)
def test_what_is_no_outage_is_refused(tmp_path: Path, text: str, error: type[Exception], match: str) -> None:
    log = write_log(tmp_path / "one.swf", (0, 10, 1, 10))
    if text.startswith("{"):
        (tmp_path / "f.jsonl").write_text(text)
        text = str(tmp_path / "f.jsonl")
    with pytest.raises(error, match=match):
        simulation.simulate(log, machine="bgl", failures=text)
    with pytest.raises(ConfigurationError, match="whose units have names, got flat:8"):
        simulation.simulate(log, machine="flat:8", failures="1d:1h")
    with pytest.raises(ConfigurationError, match="exclude each other"):
        simulation.simulate(log, machine="bgl", failures="1d:1h", reservations=["1:2:1"])
