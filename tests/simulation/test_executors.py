"""Simulations on a dask cluster of two workers: the same results, and what is wrong is said."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError, TransportError
from simulation.cli.experiment import experiment
from simulation.cli.swarm import swarm
from simulation.cli.sweep import sweep
from simulation.experiments import executors
from simulation.experiments.executors import check_executor, working_on
from simulation.experiments.worker_processes import run_all

LIMIT_S = 300.0
EXAMPLES = Path(__file__).parents[2] / "examples"
LOADS = EXAMPLES / "loads.toml"
RAMP = [sys.executable, "-m", "ramp.cli.main"]


@pytest.mark.parametrize("text", ["", "dask", "dask:", "dask:host", "dask:http://a:1", "ray:tcp://a:1", "dask:a:1 b"])
def test_an_executor_that_is_none_is_bad_input(text):
    with pytest.raises(ConfigurationError, match="expected local or dask:ADDRESS"):
        check_executor(text)


@pytest.mark.parametrize("text", ["dask:tcp://10.0.0.5:8786", "dask:cluster.example:8786", "dask:tls://[::1]:8786"])
def test_addresses(text):
    assert check_executor(text) == text.removeprefix("dask:")


def test_local_needs_no_address():
    assert not check_executor("local")


@pytest.mark.parametrize(
    ("verb", "arguments", "option"),
    [
        (swarm, ["--workers", "2"], "--workers"),
        (sweep, [str(LOADS), "--out", "unused", "--processes", "2"], "--processes"),
        (experiment, ["run", "rounds", "--out", "unused", "--processes", "2"], "--processes"),
        (experiment, ["run", "rounds", "--out", "unused", "--xmpp"], "--executor"),
    ],
)
def test_options_that_would_count_for_nothing_are_refused(verb, arguments, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(verb, [*arguments, "--executor", "dask:tcp://127.0.0.1:1"])
    assert isinstance(result.exception, ConfigurationError)
    assert option in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_nobody_at_the_address_is_said(monkeypatch):
    monkeypatch.setattr(executors, "CONNECT_LIMIT_S", 0.5)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = f"dask:tcp://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(TransportError, match="no dask scheduler answers"), working_on(where):
            pass


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler with two workers, each a process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as running:
        yield f"dask:{running.scheduler_address}"


@pytest.mark.slow
def test_answers_come_in_the_order_of_the_tasks_and_from_the_workers(cluster):
    seen: list[tuple[int, int]] = []
    told: dict[int, int] = {}
    with working_on(cluster):
        answers = run_all(
            abs,
            [-5, 1, -4],
            processes=None,
            on_progress=lambda done, total: seen.append((done, total)),
            on_answer=told.__setitem__,
        )
        places = run_all(os.path.realpath, ["/proc/self"] * 2, processes=None, on_progress=None)
    assert answers == [5, 1, 4]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert told == {0: 5, 1: 1, 2: 4}
    assert f"/proc/{os.getpid()}" not in places


@pytest.mark.slow
def test_a_task_that_raises_raises_here(cluster):
    with working_on(cluster), pytest.raises(ValueError, match="invalid literal"):
        run_all(int, ["1", "two", "3"], processes=None, on_progress=None)


@pytest.mark.slow
def test_a_swarm_and_an_experiment_come_to_the_same_results(cluster, tmp_path):
    seeds = ["--seeds", "21", "--json"]
    here = CliRunner().invoke(swarm, [*seeds, "--jobs", "1"])
    there = CliRunner().invoke(swarm, [*seeds, "--executor", cluster])
    assert there.exit_code == 0, there.output
    assert json.loads(there.stdout) == json.loads(here.stdout)
    for name, options in (("here", ["--processes", "1"]), ("there", ["--executor", cluster])):
        arguments = ["run", "rounds", "--quick", "--out", str(tmp_path / name), *options]
        result = CliRunner().invoke(experiment, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    tables = sorted(path.name for path in (tmp_path / "here" / "rounds").glob("*.csv"))
    assert tables
    for table in tables:
        assert (tmp_path / "there" / "rounds" / table).read_text() == (tmp_path / "here" / "rounds" / table).read_text()


@pytest.mark.slow
def test_a_study_in_a_file_is_measured_by_workers_that_load_the_file(cluster, tmp_path):
    """The workers reach the file under the same path."""
    arguments = ["run", f"{EXAMPLES / 'own_experiment.py'}:STUDY", "--quick", "--out", str(tmp_path)]
    result = CliRunner().invoke(experiment, [*arguments, "--executor", cluster], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = (tmp_path / "own-rounds" / "runs.csv").read_text().split()
    assert [row.partition(",")[0] for row in rows] == ["rounds", "1", "2", "3", "4", "5"]


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_elsewhere_with_the_same_table(cluster, tmp_path):
    """kill -9 once the first point is on disk; the rest is done by the cluster."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    arguments = [*RAMP, "sweep", str(LOADS), "--processes", "1"]
    subprocess.run([*arguments, "--out", str(whole)], check=True, capture_output=True, timeout=LIMIT_S)
    program = subprocess.Popen([*arguments, "--out", str(cut)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + LIMIT_S
    while not list(cut.glob("points/*.json")):
        assert time.monotonic() < end, "no point came to an end"
        time.sleep(0.01)
    program.send_signal(signal.SIGKILL)
    program.wait()
    result = CliRunner().invoke(sweep, [str(LOADS), "--out", str(cut), "--executor", cluster], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "of them earlier" in result.stderr
    for name in ("sweep.csv", "sweep.json"):
        assert (cut / name).read_text() == (whole / name).read_text()
