"""Blocks that boot before jobs run and units that fail: by hand, and traces checked by a reader of their own."""

import json
import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulation
from ramp.errors import ConfigurationError, DocumentError, MachineError
from simulation.machine_files import load_machine
from simulation.machines.interface import GridMachine, NodeState, has_places
from simulation.machines.view import view_of_trace
from simulation.queueing.outages import drawn_failures
from tests.queue_runs import write_log
from tests.unit.machines.test_bluegene_conf import cells, machine_of

TIMES = """configure_s = 10
deallocate_s = 30
boot = [{ midplanes = 1, seconds = 100 }, { midplanes = 4, seconds = 200 }, { midplanes = 16, seconds = 400 }]
"""
STATIC = "BPs=[00x11] Type=MESH\nBPs=22\nBPs=33\n"
OVERLAP = "LayoutMode=OVERLAP\nBPs=[00x10]\nBPs=[20x30]\nBPs=[01x12]\nBPs=[11x31]\nBPs=33\nBPs=[23x33] Type=MESH\n"
FREEING, CONFIGURING = 30, 10


def boot_s(size: int) -> int:
    return 100 if size == 1 else 200 if size <= 4 else 400


def small(path: Path, conf: str) -> GridMachine:
    machine = machine_of(path, conf, TIMES)
    assert has_places(machine)
    return machine


def lives(trace: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    keys = ("job_number", "block", "start_time", "boot_time", "ready_time", "done_time", "end_time")
    return [tuple(line[key] for key in keys) for line in trace if "job_number" in line]


def test_a_block_boots_once_until_another_one_takes_its_midplanes(tmp_path: Path) -> None:
    """Midplanes 22 fail at 4000 s, while nobody is on their block, which boots anew for the last job."""
    jobs = [(0, 50, 1, 60), (1000, 50, 1, 60), (2000, 50, 16, 60), (3000, 50, 1, 60), (3500, 50, 1, 60),
            (5000, 50, 1, 60), (6000, 0, 1, 0), (6000, 10, 16, 20), (6000, 10, 1, 20)]  # fmt: skip
    machine = small(tmp_path, STATIC)
    out = tmp_path / "out.jsonl"
    out.write_text('{"out": "down", "nodes": "b22", "start_time": 4000, "end_time": 4500}\n')
    run = simulation.simulate(
        write_log(tmp_path / "log.swf", *jobs), machine=machine, scheduler="easy", failures=str(out)
    )
    assert lives(run.trace) == [
        (1, "RMP001", 0, 10, 110, 160, 160),
        (2, "RMP001", 1000, 1000, 1000, 1050, 1050),
        (3, "RMP003", 2000, 2040, 2440, 2490, 2490),  # the single block is freed for the whole machine
        (4, "RMP001", 3000, 3040, 3140, 3190, 3190),
        (5, "RMP001", 3500, 3500, 3500, 3550, 3550),
        (6, "RMP001", 5000, 5010, 5110, 5160, 5160),
        (7, "RMP001", 6000, 6000, 6000, 6000, 6000),
        (8, "RMP003", 6000, 6040, 6440, 6450, 6450),
        (9, "RMP001", 6450, 6490, 6590, 6600, 6600),
    ]
    assert run.jobs["run_time_s"].tolist() == [160, 50, 490, 190, 50, 160, 0, 450, 150]
    assert run.jobs["requested_time_s"].tolist() == [170, 60, 500, 200, 60, 170, 0, 460, 160]
    assert run.metrics.ended_at_request == 0
    rows = [(number, line) for number, line in enumerate(run.trace, 1) if number > 1]

    def states(second: float) -> list[str]:
        view = view_of_trace(machine, rows, second, "t")
        assert [block.name for block in view.blocks] == ["RMP000", "RMP001", "RMP002", "RMP003"]
        return [block.state for block in view.blocks]

    assert states(5) == ["FREE", "CONFIG", "FREE", "FREE"]
    assert states(100) == ["FREE", "BOOTING", "FREE", "FREE"]
    assert states(120) == ["FREE", "BUSY", "FREE", "FREE"]
    assert states(999) == ["FREE", "READY", "FREE", "FREE"]
    assert states(2010) == ["FREE", "DEALLOC", "FREE", "CONFIG"]
    assert states(2500) == ["FREE", "FREE", "FREE", "READY"]
    assert states(3600) == ["FREE", "READY", "FREE", "FREE"]
    assert states(4100) == ["FREE", "ERROR", "FREE", "ERROR"]
    assert states(4600) == ["FREE", "FREE", "FREE", "FREE"]


def test_easy_counts_on_the_booted_block_of_a_running_job_and_on_the_longest_boot_of_those_that_wait(
    tmp_path: Path,
) -> None:
    """Job 2 ends at 1500 s at the latest, so job 3 is promised that; job 4 may need until 1541 s and has to wait."""
    jobs = [(0, 50, 1, 60), (1000, 500, 1, 500), (1000, 10, 16, 10), (1001, 100, 1, 100)]
    log = write_log(tmp_path / "log.swf", *jobs)
    run = simulation.simulate(log, machine=small(tmp_path, STATIC), scheduler="easy")
    assert [life[:3] for life in lives(run.trace)] == [
        (1, "RMP001", 0), (2, "RMP001", 1000), (3, "RMP003", 1500), (4, "RMP001", 1950),
    ]  # fmt: skip
    log = write_log(tmp_path / "log.swf", *jobs[:3], (1001, 50, 1, 59))
    run = simulation.simulate(log, machine=small(tmp_path, STATIC), scheduler="easy")
    assert [life[:3] for life in lives(run.trace)] == [
        (1, "RMP001", 0), (4, "RMP002", 1001), (2, "RMP001", 1000), (3, "RMP003", 1500),
    ]  # fmt: skip


def test_easy_counts_on_the_booted_block_of_a_job_that_it_let_overtake(tmp_path: Path) -> None:
    """Job 4 overtakes job 3 on a booted block until 1301 s. Job 2 ends early, so job 3 begins then, before job 5."""
    jobs = [(0, 50, 1, 60), (1000, 10, 4, 1000), (1000, 10, 16, 10), (1001, 300, 1, 300), (1225, 20, 1, 20)]
    log = write_log(tmp_path / "log.swf", *jobs)
    run = simulation.simulate(log, machine=small(tmp_path, STATIC), scheduler="easy")
    assert [life[:3] for life in lives(run.trace)] == [
        (1, "RMP001", 0), (2, "RMP000", 1000), (4, "RMP001", 1001), (3, "RMP003", 1301), (5, "RMP001", 1751),
    ]  # fmt: skip


def test_a_reservation_boots_its_block(tmp_path: Path) -> None:
    """The whole machine is reserved between two jobs of one block, which is freed for it."""
    log = write_log(tmp_path / "log.swf", (0, 50, 1, 60), (2000, 50, 1, 60))
    machine = small(tmp_path, STATIC)
    run = simulation.simulate(log, machine=machine, scheduler="easy", reservations=["1000:1100:16"])
    assert lives(run.trace) == [(1, "RMP001", 0, 10, 110, 160, 160), (2, "RMP001", 2000, 2040, 2140, 2190, 2190)]
    rows = [(number, line) for number, line in enumerate(run.trace, 1) if number > 1]
    assert [view_of_trace(machine, rows, second, "t").blocks[3].state for second in (999, 1200, 2100)] == [
        "FREE", "READY", "FREE",
    ]  # fmt: skip


def test_a_job_that_fails_while_its_block_boots_is_requeued_whole(tmp_path: Path) -> None:
    machine = small(tmp_path, "BPs=22\nBPs=33\n")
    out = tmp_path / "out.jsonl"
    out.write_text('{"out": "down", "nodes": "b22", "start_time": 50, "end_time": 60}\n')
    log = write_log(tmp_path / "log.swf", (0, 500, 1, 500), (0, 90, 1, 80))
    run = simulation.simulate(log, machine=machine, scheduler="fcfs", failures=str(out))
    assert lives(run.trace) == [
        (1, "RMP000", 0, 10, 50, 50, 50),
        (2, "RMP001", 0, 10, 110, 190, 190),  # ended at its request of 80 s after the boot
        (1, "RMP000", 60, 70, 170, 670, 670),
    ]
    assert run.metrics.ended_at_request == 1


def parts(line: dict[str, Any]) -> set[tuple[str, ...]]:
    """Midplanes of a job, and its cables: dimension, the line's other coordinate, label."""
    held = cells(line["nodes"].removeprefix("b"))
    cables = {(name, cell[1 - axis], str(label)) for axis, name in enumerate("xy") for cell in held
              for label in line["links"][name]}  # fmt: skip
    return {(cell,) for cell in held} | cables


@pytest.mark.parametrize("scheduler", ["easy", "conservative", "fcfs", "first-fit"])
@pytest.mark.parametrize("conf", [STATIC, OVERLAP], ids=["static", "overlap"])
def test_every_job_of_a_run_boots_its_block_just_where_it_must(tmp_path: Path, conf: str, scheduler: str) -> None:
    run = simulation.simulate("synthetic", machine=small(tmp_path, conf), scheduler=scheduler, load=0.8, max_jobs=150,
                              torus_probability=0.3, failures="4d:3h", seed=5)  # fmt: skip
    lines: list[dict[str, Any]] = json.loads(json.dumps(list(run.trace)))
    # in order of time, at one moment failures before starts
    events = sorted(
        (line for line in lines if "trace" not in line), key=lambda one: (one["start_time"], "out" not in one)
    )
    booted: dict[str, set[tuple[str, ...]]] = {}
    freeing: list[tuple[float, set[tuple[str, ...]]]] = []
    kinds = set()
    for one in events:
        mine = parts({"links": {"x": [], "y": []}, **one})
        in_the_way = {name for name, theirs in booted.items() if theirs & mine}
        freed = max((begin for begin, theirs in freeing if theirs & mine), default=-FREEING)
        if "job_number" in one and "ended" not in one:
            size, again = sum(len(part) == 1 for part in mine), one["block"] in booted
            left = FREEING if in_the_way else max(freed + FREEING - one["start_time"], 0)
            startup = 0 if again else left + CONFIGURING + boot_s(size)
            assert one["ready_time"] == pytest.approx(one["start_time"] + startup, abs=1e-3)
            assert one["boot_time"] == pytest.approx(one["ready_time"] - (boot_s(size) if startup else 0), abs=1e-3)
            assert one["done_time"] == one["end_time"]
            kinds.add((again, bool(in_the_way)))
        for name in in_the_way - {one.get("block")}:
            if "job_number" in one:
                freeing.append((one["start_time"], booted[name]))
            del booted[name]
        if "job_number" in one:
            booted[one["block"]] = mine
    assert run.metrics.jobs == 150
    assert run.metrics.requeued > 0
    assert kinds == {(True, True), (False, True), (False, False)}


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
