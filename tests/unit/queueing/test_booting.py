"""Listed blocks stay booted between jobs: by hand, and traces of whole runs by a reader of their own."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import simulation
from simulation.machine_files import load_machine
from simulation.machines.interface import GridMachine, has_places
from simulation.machines.view import view_of_trace
from tests.queue_runs import write_log

RINGS = "".join(f'[[dimension]]\nname = "{name}"\nring = [0, 1, 3, 2]\n' for name in "xy")
FILE = f"""name = "small"
kind = "cabled-torus"
prefix = "b"
bluegene_conf = "b.conf"
configure_s = 10
deallocate_s = 30
boot = [{{ midplanes = 1, seconds = 100 }}, {{ midplanes = 4, seconds = 200 }}, {{ midplanes = 16, seconds = 400 }}]
{RINGS}"""
STATIC = "BPs=[00x11] Type=MESH\nBPs=22\nBPs=33\n"
OVERLAP = "LayoutMode=OVERLAP\nBPs=[00x10]\nBPs=[20x30]\nBPs=[01x12]\nBPs=[11x31]\nBPs=33\nBPs=[23x33] Type=MESH\n"
FREEING, CONFIGURING = 30, 10


def boot_s(size: int) -> int:
    return 100 if size == 1 else 200 if size <= 4 else 400


def small(path: Path, conf: str) -> GridMachine:
    (path / "b.conf").write_text(conf)
    (path / "m.toml").write_text(FILE)
    machine = load_machine(path / "m.toml")
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
    low, _, high = line["nodes"].removeprefix("b").strip("[]").partition("x")
    ends = list(zip(low, high or low, strict=True))
    cells = [f"{x}{y}" for x in range(int(ends[0][0]), int(ends[0][1]) + 1)
             for y in range(int(ends[1][0]), int(ends[1][1]) + 1)]  # fmt: skip
    cables = {(name, cell[1 - axis], str(label)) for axis, name in enumerate("xy") for cell in cells
              for label in line["links"][name]}  # fmt: skip
    return {(cell,) for cell in cells} | cables


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
