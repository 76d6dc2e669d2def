"""`simulation.simulate`: what it takes and what it gives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simulation
from ramp.errors import ConfigurationError, MachineError, WorkloadError
from simulation.machines.flat import FlatMachine
from simulation.schedulers.policies.easy import EasyBackfill
from simulation.workload.swf import read_swf


def test_importing_loads_nothing_heavy() -> None:
    heavy = ("numba", "matplotlib", "spade", "numpy", "lxml", "sqlalchemy")
    code = f"import sys, simulation; dir(simulation); print([one for one in {heavy} if one in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(getattr(simulation, name) is not None for name in simulation.__all__)
    assert set(simulation.__all__) <= set(dir(simulation))
    with pytest.raises(AttributeError, match="no attribute 'simulation_of'"):
        _ = simulation.simulation_of


def test_jobs_metrics_and_trace(log: Path) -> None:
    """64 processors: jobs 1 and 2 together, job 2 ended at its request, then job 3 at 100 s."""
    run = simulation.simulate(log, machine="flat:64")
    assert run.jobs["job_number"].tolist() == [1, 2, 3]
    assert run.jobs["start_s"].tolist() == [0, 1, 100]
    assert run.jobs["end_s"].tolist() == [100, 61, 200]
    assert run.jobs["wait_s"].tolist() == [0, 0, 98]
    assert (run.jobs["run_time_s"][1], run.jobs["requested_time_s"][1]) == (100, 60)
    assert (run.jobs["size"].tolist(), run.jobs["user"].tolist()) == ([8, 8, 64], [5, 5, 5])
    assert run.metrics.utilisation == pytest.approx((8 * 100 + 8 * 60 + 64 * 100) / (64 * 200))
    assert (run.metrics.ended_at_request, run.metrics.refused) == (1, 0)
    assert [(line["job_number"], line["start_time"]) for line in list(run.trace)[1:]] == [(2, 1), (1, 0), (3, 100)]
    assert repr(run).startswith("<small.swf on flat:64, easy: 3 jobs: utilisation 60.0%")


def test_what_is_written_can_be_read(log: Path, tmp_path: Path) -> None:
    run = simulation.simulate(log, machine="bgl", scheduler="first-fit", shape="fat", torus_probability=1.0)
    run.write_trace(tmp_path / "trace.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert lines == list(run.trace)
    assert lines[2]["nodes"] == "bgl[000x111]"
    run.write_swf(tmp_path / "out.swf")
    assert read_swf(tmp_path / "out.swf").job_number.tolist() == [1, 2, 3]
    for draw in (run.gantt, run.timeline):
        assert draw(tmp_path / "picture.png").axes
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        run.write_trace(tmp_path / "none" / "trace.jsonl")


def test_objects_do_as_well_as_names(log: Path) -> None:
    """A machine, a scheduler, its class, a log that is read; the machine is left alone."""
    machine = FlatMachine(64)
    by_name = simulation.simulate(log, machine="flat:64", scheduler="easy")
    for scheduler in (EasyBackfill(), EasyBackfill, "simulation.schedulers.policies.easy:EasyBackfill"):
        run = simulation.simulate(read_swf(log), machine=machine, scheduler=scheduler)
        assert np.array_equal(run.jobs, by_name.jobs)
    assert machine.free == 64


def test_pandas_is_asked_for_only_where_it_is_wanted(log: Path) -> None:
    jobs = simulation.simulate(log, machine="flat:64").jobs
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigurationError, match="pip install pandas"):
            jobs.to_pandas()
    else:
        assert jobs.to_pandas()["wait_s"].tolist() == [0, 0, 98]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            {"machine": "flat:64", "scheduler": "eazy"},
            ConfigurationError,
            "unknown scheduler 'eazy'; did you mean",
        ),
        ({"machine": "flat:64", "scheduler": object()}, ConfigurationError, "object lacks the scheduler methods"),
        ({"machine": "flat:64", "scheduler": "nowhere.py:A"}, ConfigurationError, "no such file: nowhere.py"),
        ({"machine": "flat:64", "scheduler": "json:dumps"}, ConfigurationError, "cannot be made: TypeError"),
        ({"machine": "flat:64", "scheduler": "no_such:A"}, ConfigurationError, "cannot be loaded: ModuleNotFoundError"),
        ({"machine": "flat:64", "scheduler": EasyBackfill(), "scheduler_options": {"a": 1}}, ConfigurationError, "'a'"),
        ({"machine": FlatMachine(4), "allocator": "base"}, ConfigurationError, "has its allocator"),
        ({"machine": "flat:4"}, WorkloadError, "none of the 3 jobs fits"),
        ({"machine": "bgl", "allocator": "two-faced"}, ConfigurationError, "allocator: unknown allocator"),
    ],
)
def test_what_is_wrong_is_said(log: Path, arguments: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        simulation.simulate(log, **arguments)


class Faulty(EasyBackfill):
    """Does on flat machines what no scheduler may."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.jobs: list[simulation.Job] = []

    def submit(self, job: simulation.Job) -> None:
        self.jobs.append(job)

    def decide(self, site: simulation.Site) -> int | None:
        if self.fault == "raises":
            raise KeyError("x")
        if self.fault == "asks at once again":
            return site.now
        for job in self.jobs:
            if self.fault != "forgets" and (placement := site.place(job)):
                site.start(job, placement)
                if self.fault != "starts twice":
                    self.jobs.remove(job)
        return None


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", "the scheduler Faulty raises KeyError: 'x' \\(at simulated time 0 s\\)"),
        ("asks at once again", "must ask for a later time, got 0 s"),
        ("forgets", "never starts 3 jobs, first job 1"),
        ("starts twice", "starts job 1, which is not waiting"),
    ],
)
def test_a_scheduler_that_does_what_none_may_is_named(log: Path, fault: str, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        simulation.simulate(log, machine="flat:64", scheduler=Faulty(fault))
