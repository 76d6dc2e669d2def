"""Sweeps: their file, the points that it comes to, and what is on disk when one is resumed."""

import csv
import itertools
import json
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError, WorkloadError
from simulation.experiments import sweeps
from simulation.experiments.sweeps import TABLE_CSV, Point, Rows, Sweep, read_sweep, run_point, run_sweep
from simulation.simulated_run import simulate

SMALL = """run = "simulate"
[fixed]
log = "synthetic"
machine = "flat:16"
max_jobs = 20
[vary]
load = [0.5, 0.9]
scheduler = ["fcfs", "easy"]
"""


def sweep_of(folder: Path, text: str) -> Sweep:
    path = folder / "sweep.toml"
    path.write_text(text, "utf-8")
    return read_sweep(path)


def test_points_are_all_combinations_the_last_parameter_changing_first(tmp_path):
    plan = sweep_of(tmp_path, SMALL)
    assert plan.varied == ("load", "scheduler")
    found = [(point.parameters["load"], point.parameters["scheduler"]) for point in plan.points]
    assert found == list(itertools.product([0.5, 0.9], ["fcfs", "easy"]))
    assert all(point.parameters["max_jobs"] == 20 for point in plan.points)


def test_tables_are_parameters_with_a_dot(tmp_path):
    text = SMALL + "scheduler_options.window = [1, 4]\nscheduler_options.window_counts = ['waiting']\n"
    last = sweep_of(tmp_path, text).points[-1]
    assert last.parameters["scheduler_options.window"] == 4
    assert last.arguments["scheduler_options"] == {"window": 4, "window_counts": "waiting"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run = ", "not TOML"),
        ("[vary]\nload = [1]", "run: is missing"),
        ('run = "qsub"', "got 'qsub', expected 'simulate' or"),
        ('run = "experiment nothing"', "no experiment 'nothing'"),
        ('run = "simulate"', "vary: is missing"),
        ('run = "simulate"\n[vary]\nlod = [1]', "vary.lod: is not a parameter of simulate; did you mean 'load'"),
        ('run = "experiment rounds"\n[vary]\nlog = [1]', "vary.log: is not a parameter of experiment rounds"),
        ('run = "simulate"\n[vary]\nload = 1', "vary.load: got 1, expected a list of values"),
        ('run = "simulate"\n[vary]\nload = []', "vary.load"),
        ('run = "simulate"\n[vary]\nload = [1, 1]', "vary.load[1]: got 1 twice"),
        ('run = "simulate"\n[vary]\nload = [[1]]', "vary.load[0]"),
        ('run = "simulate"\n[fixed]\nload = 1\n[vary]\nload = [1]', "fixed.load: is fixed and varies"),
        ('run = "simulate"\nvary = 3', "vary: got 3, expected a table"),
        ('run = "simulate"\n[very]\nload = [1]', "very: is unknown; did you mean 'vary'"),
        (f'run = "simulate"\n[vary]\nseed = {list(range(400))}\nmax_jobs = {list(range(400))}', "got 160000"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_named(tmp_path, text, words):
    with pytest.raises(ConfigurationError) as raised:
        sweep_of(tmp_path, text)
    assert words in str(raised.value)
    assert raised.value.exit_code == 2


def test_true_and_1_are_two_values(tmp_path):
    assert len(sweep_of(tmp_path, 'run = "experiment rounds"\n[vary]\nseed = [true, 1]').points) == 2


def test_the_key_is_that_of_parameters_and_of_the_files_that_they_name(tmp_path):
    machine = tmp_path / "machine.toml"
    machine.write_text("one")
    point = Point("simulate", {"machine": str(machine), "load": 0.5})
    same = Point("simulate", {"load": 0.5, "machine": str(machine)})
    assert point.key == same.key
    assert point.key != Point("simulate", {"machine": str(machine), "load": 0.6}).key
    before = point.key
    machine.write_text("two")
    assert point.key != before


def test_rows_are_what_simulate_says(tmp_path):
    """The reference is the function itself, called with the same arguments."""
    plan = sweep_of(tmp_path, SMALL.replace(', "easy"', ""))
    result = run_sweep(plan, tmp_path / "out", processes=1, on_progress=None)
    assert result.failures == {}
    for row in result.rows:
        metrics = simulate(
            "synthetic", machine="flat:16", max_jobs=20, load=row["load"], scheduler=row["scheduler"]
        ).metrics
        assert row["mean_wait_s"] == metrics.mean_wait_s
        assert row["utilisation"] == metrics.utilisation
    with (tmp_path / "out" / "sweep.csv").open(newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [(float(row["load"]), row["scheduler"]) for row in table] == [(0.5, "fcfs"), (0.9, "fcfs")]
    assert json.loads((tmp_path / "out" / "sweep.json").read_text()) == list(result.rows)


def counting(monkeypatch: pytest.MonkeyPatch, fails: float | None = None) -> list[float]:
    """Points answer their load without a simulation, one of them not; returns the loads that were run."""
    run: list[float] = []

    def answer(point: Point) -> tuple[Rows, str]:
        load = point.parameters["load"]
        run.append(load)
        return ([], "it burns") if load == fails else ([{"wait_s": 10 * load}], "")

    monkeypatch.setattr(sweeps, "run_point", answer)
    return run


LOADS = 'run = "simulate"\n[vary]\nload = [%s]\n'


def test_what_is_on_disk_is_not_run_again(tmp_path, monkeypatch):
    run = counting(monkeypatch)
    out = tmp_path / "out"
    run_sweep(sweep_of(tmp_path, LOADS % "1, 2"), out, processes=1, on_progress=None)
    again = run_sweep(sweep_of(tmp_path, LOADS % "3, 2"), out, processes=1, on_progress=None)
    assert run == [1, 2, 3]
    assert again.resumed == 1
    assert [dict(row) for row in again.rows] == [{"load": 3, "wait_s": 30}, {"load": 2, "wait_s": 20}]


@pytest.mark.parametrize("damaged", [b"", b"{}", b'{"key": "other", "rows": []}', b"\xff", b'{"rows": [1]}', b"[]"])
def test_a_damaged_point_is_run_again(tmp_path, monkeypatch, damaged):
    run = counting(monkeypatch)
    plan = sweep_of(tmp_path, LOADS % "1")
    first = run_sweep(plan, tmp_path / "out", processes=1, on_progress=None)
    (point,) = (tmp_path / "out" / "points").iterdir()
    point.write_bytes(damaged)
    assert run_sweep(plan, tmp_path / "out", processes=1, on_progress=None).rows == first.rows
    assert run == [1, 1]


def test_a_point_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    run = counting(monkeypatch, fails=2)
    plan = sweep_of(tmp_path, LOADS % "1, 2, 3")
    result = run_sweep(plan, tmp_path / "out", processes=1, on_progress=None)
    assert [row["load"] for row in result.rows] == [1, 3]
    assert result.failures == {"load=2": "it burns"}
    run_sweep(plan, tmp_path / "out", processes=1, on_progress=None)
    assert run == [1, 2, 3, 2]


def test_what_a_point_raises_is_its_own_failure():
    rows, problem = run_point(Point("simulate", {"log": "no-such-log", "machine": "flat:4"}))
    assert not rows
    assert "there is no such workload log" in problem
    rows, problem = run_point(Point("simulate", {"log": "synthetic", "machine": "flat:4", "load": "high"}))
    assert not rows
    assert problem
    with pytest.raises(WorkloadError):
        simulate("no-such-log", machine="flat:4")


def test_a_share_of_malleable_jobs_can_be_swept_and_its_waits_stand_apart(tmp_path):
    """The same numbers as one run by itself; where nobody is malleable there is no mean of such jobs."""
    text = SMALL.partition("[vary]")[0] + 'scheduler = "malleable"\n[vary]\nmalleable_share = [0.0, 0.5]\n'
    run_sweep(sweep_of(tmp_path, text), tmp_path / "out", processes=1, on_progress=None)
    with (tmp_path / "out" / TABLE_CSV).open(encoding="utf-8", newline="") as stream:
        none, half = csv.DictReader(stream)
    alone = simulate("synthetic", machine="flat:16", max_jobs=20, scheduler="malleable", malleable_share=0.5)
    assert float(half["mean_turnaround_s"]) == alone.malleable.mean_turnaround_s
    assert float(half["mean_malleable_wait_s"]) == alone.malleable.mean_malleable_wait_s
    assert int(half["malleable_jobs"]) == alone.malleable.jobs > 0
    assert (none["malleable_jobs"], none["mean_malleable_wait_s"]) == ("0", "")
