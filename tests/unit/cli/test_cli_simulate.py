"""`ramp simulate` on small logs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ramp.errors import ConfigurationError, WorkloadError
from simulation.cli.simulate import simulate
from simulation.schedulers.declaration import SCHEDULERS
from simulation.workload.swf import read_swf

SUMMARY_FIELDS = {"jobs", "utilisation", "mean_wait_s", "mean_relative_wait", "mean_bounded_slowdown", "makespan_s",
                  "wall_s", "jobs_per_s"}  # fmt: skip
TRACE_FIELDS = ["job_number", "submit_time", "start_time", "end_time", "shape", "origin", "connection", "nodes",
                "links"]  # fmt: skip


def call(log: object, *options: object, machine: str = "flat:64", scheduler: str = "fcfs") -> Result:
    """Run `ramp simulate`; errors of the user come as they are, so the command line ends with 2."""
    words = ["--machine", machine, "--log", log, "--scheduler", scheduler, *options]
    return CliRunner().invoke(simulate, list(map(str, words)), catch_exceptions=False)


def run(log: object, *options: object, machine: str = "flat:64", scheduler: str = "easy") -> dict[str, object]:
    result = call(log, *options, "--json", machine=machine, scheduler=scheduler)
    assert result.exit_code == 0, result.output
    answer: dict[str, object] = json.loads(result.stdout)
    return answer


def test_flat_summary(log: Path) -> None:
    """64 processors: jobs 1 and 2 together, then job 3; job 2 is cut at its request."""
    summary = run(log)
    assert set(summary) >= SUMMARY_FIELDS
    assert summary["jobs"] == 3
    assert summary["makespan_s"] == 200
    assert summary["mean_wait_s"] == pytest.approx(98 / 3)
    assert summary["utilisation"] == pytest.approx((8 * 100 + 8 * 60 + 64 * 100) / (64 * 200))
    assert summary["ended_at_request"] == 1


@pytest.mark.parametrize("scheduler", SCHEDULERS.names())
def test_a_large_flat_machine_plans_no_shapes(scheduler: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes of 10^9 processors, or a table of them, would take all memory."""

    def never(*_: object) -> None:
        raise AssertionError("shapes are planned")

    monkeypatch.setattr("simulation.queueing.job_table.choose_shapes", never)
    summary = run(log, machine="flat:1000000000", scheduler=scheduler)
    assert (summary["jobs"], summary["mean_wait_s"]) == (3, 0)


def test_jobs_that_are_left_out_are_counted(log: Path) -> None:
    """One of unknown submission, one of unknown run time."""
    with log.open("a") as stream:
        stream.write("4 -1 0 100 8 -1 -1 8 100 -1 1 5 1 1 1 1 -1 -1\n")
        stream.write("5 9 0 -1 8 -1 -1 8 100 -1 5 5 1 1 1 1 -1 -1\n")
    result = call(log, "--json")
    assert json.loads(result.stdout)["jobs"] == 3
    assert "2 of the log's 5 jobs have no known size, submission or run time" in result.stderr


def test_overruns_can_be_kept(log: Path) -> None:
    """Job 2 then works its 100 s, from 1 to 101, and job 3 follows it."""
    summary = run(log, "--overrun", "keep", scheduler="fcfs")
    assert summary["makespan_s"] == 201
    assert summary["ended_at_request"] == 0


def test_trace_of_a_torus_machine(log: Path, tmp_path: Path) -> None:
    """One line a job with the named fields; fat tori of 8 are 2x2x2 and hold whole y- and z-rings."""
    trace = tmp_path / "trace.jsonl"
    run(log, "--shape", "fat", "--torus-probability", "1", "--trace", trace, machine="bgl", scheduler="first-fit")
    lines = [json.loads(text) for text in trace.read_text().splitlines()[1:]]
    assert [list(line) for line in lines] == [TRACE_FIELDS] * 3
    assert [line["job_number"] for line in lines] == [2, 1, 3]
    first = lines[1]
    assert (first["submit_time"], first["start_time"], first["end_time"]) == (0, 0, 100)
    assert (first["shape"], first["nodes"], first["connection"]) == ([2, 2, 2], "bgl[000x111]", ["torus"] * 3)
    assert first["links"] == {"x": [0, 2], "y": [0, 1, 2, 3], "z": [0, 1, 2, 3]}


def test_schedule_as_a_log(log: Path, tmp_path: Path) -> None:
    """Simulated waits and ends in SWF, the log's other fields kept."""
    target = tmp_path / "out.swf"
    run(log, "--swf", target)
    written = read_swf(target)
    assert written.job_number.tolist() == [1, 2, 3]
    assert written.wait_time.tolist() == [0, 0, 98]
    assert written.run_time.tolist() == [100, 60, 100]
    assert written.status.tolist() == [1, 0, 1]
    assert written.user_id.tolist() == [5, 5, 5]
    assert written.header_integer("MaxProcs") == 64


def test_a_schedule_can_be_taken_for_a_log_again(log: Path, tmp_path: Path) -> None:
    """The header counts the jobs of the file, foreign bytes stay, and a job that was cut does not become complete."""
    text = log.read_bytes().decode()
    log.write_bytes(
        b"; Installation: Z\xfcrich\n; MaxJobs: 99\n; MaxRecords: 999\n"
        + text.replace("3 2 0 100 64 -1 -1 64 100 -1 1", "3 2 0 100 64 -1 -1 64 100 -1 5").encode()
    )
    first, second = tmp_path / "first.swf", tmp_path / "second.swf"
    run(log, "--max-jobs", 2, "--swf", first)
    written = read_swf(first)
    assert [written.header_integer(key) for key in ("MaxJobs", "MaxRecords", "MaxProcs")] == [2, 2, 64]
    assert len(written.header["MaxJobs"]) == 1
    assert first.read_bytes().startswith(b"; Installation: Z\xfcrich\n")
    run(log, "--swf", first)
    run(first, "--swf", second)
    assert read_swf(first).status.tolist() == [1, 0, 5]
    assert read_swf(second).status.tolist() == [1, 0, 5]


def test_a_job_number_that_occurs_twice_is_named_with_its_lines(log: Path) -> None:
    with log.open("a") as stream:
        stream.write("; a comment\n2 5 0 100 8 -1 -1 8 100 -1 1 5 1 1 1 1 -1 -1\n")
    with pytest.raises(WorkloadError, match=r"small\.swf:6: job number 2 occurs twice, first on line 3"):
        call(log)


def test_partial_executions_are_told(log: Path) -> None:
    with log.open("a") as stream:
        stream.write("2 5 0 50 8 -1 -1 8 100 -1 2 5 1 1 1 1 -1 -1\n2 -1 9 10 8 -1 -1 8 100 -1 3 5 1 1 1 1 -1 -1\n")
    result = call(log, "--json")
    assert json.loads(result.stdout)["jobs"] == 3
    assert result.stderr.startswith("2 of the log's lines are partial executions")


def test_reservations_on_the_command_line(log: Path) -> None:
    """60 of 64 processors from 50 to 1000: jobs of 8 that would still run at 50 wait until 1000."""
    summary = run(log, "--reservation", "50:1000:60", scheduler="conservative")
    assert summary["reservations_granted"] == 1
    assert summary["makespan_s"] == 1200


def test_a_reservation_without_room_is_told(log: Path) -> None:
    """Two of 40 processors do not lie side by side on 64."""
    result = call(log, "--json", "--reservation", "50:99:40", "--reservation", "60:70:40")
    assert json.loads(result.stdout)["reservations_granted"] == 1
    assert result.stderr == "no free space for the reservation 60:70:40 on flat:64\n"


def test_load_and_job_limits(log: Path) -> None:
    """--max-jobs takes the first jobs; --load spreads arrivals: two jobs of 800 unit-seconds at 0.5 of 64: 50 s."""
    summary = run(log, "--max-jobs", 2, "--load", 0.5, "--overrun", "keep", scheduler="fcfs")
    assert summary["jobs"] == 2
    assert summary["makespan_s"] == 150


def test_jobs_that_are_too_large_are_counted(log: Path) -> None:
    """They are refused and told about, as long as one fits."""
    result = call(log, "--json", machine="flat:32")
    assert json.loads(result.stdout)["refused"] == 1
    assert "1 jobs do not fit flat:32" in result.stderr


@pytest.mark.parametrize(
    ("machine", "options", "error", "words"),
    [
        ("flat:64", ["--shape", "fat"], ConfigurationError, "no shapes|no shape"),
        ("bgl", ["--shape", "fat", "--fat-probability", "0.5"], ConfigurationError, "give one"),
        ("flat:64", ["--load", "0"], WorkloadError, "above 0"),
        ("flat:64", ["--reservation", "5:1:3"], ConfigurationError, "BEGIN:END:SIZE"),
        ("flat:64", ["--reservation", "x"], ConfigurationError, "BEGIN:END:SIZE"),
        ("flat:64", ["--reservation", "0:100:2x2"], ConfigurationError, "flat machine has no shapes"),
        ("flat:64", ["--reservation", "0:100:4:torus"], ConfigurationError, "and no connections"),
        ("flat:64", ["--reservation", "0:100:65"], ConfigurationError, "64 units in service. cannot hold"),
        ("bgl", ["--reservation", "0:100:9x9x9"], ConfigurationError, "bgl .8x4x4, .* cannot hold this"),
        ("bgl", ["--reservation", "0:100:1x1x1x2"], ConfigurationError, "has 4 extents, the machine 3"),
        ("flat:4", [], WorkloadError, r"small\.swf: none of the 3 jobs fits flat:4.* asks for 8"),
        ("no-such-machine", [], ConfigurationError, "unknown machine"),
        (
            "flat:64",
            ["-o", "window=4"],
            ConfigurationError,
            "fcfs: has no option 'window'; available for window-first-fit",
        ),
    ],
)
def test_wrong_options_say_what_would_be_right(
    machine: str, options: list[str], error: type[Exception], words: str, log: Path
) -> None:
    with pytest.raises(error, match=words):
        call(log, *options, machine=machine)


def test_outputs_are_checked_before_the_simulation(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole log should not have run for nothing, and neither output may overwrite the other one or the log."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the simulation began")

    monkeypatch.setattr("simulation.simulated_run.run_log", never)
    before = log.read_bytes()
    both = tmp_path / "both"
    for options, words in (
        (["--swf", str(tmp_path / "none" / "o.swf")], "swf: cannot be written: there is no such folder"),
        (["--trace", str(tmp_path / "none" / "o.jsonl")], "trace: cannot be written: there is no such folder"),
        (["--trace", str(both), "--swf", str(tmp_path / "x" / ".." / "both")], "is also the file of --"),
        (["--trace", str(log)], "trace: is the log that is read"),
        (["--swf", str(log)], "swf: is the log that is read"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            call(log, *options)
    assert log.read_bytes() == before


def test_a_missing_log_is_named() -> None:
    """The file that is not there."""
    with pytest.raises(WorkloadError, match=r"nowhere\.swf"):
        call("nowhere.swf")


def test_a_synthetic_log_is_fitted_to_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMP_LOGS", "")
    swf = tmp_path / "made.swf"
    told = run("synthetic", "--seed", 7, "--swf", swf, scheduler="fcfs")
    assert told["refused"] == 0
    made = read_swf(swf)
    assert told["jobs"] == len(made)
    assert int(made.allocated_processors.max()) <= 64
    assert 29 * 86_400 < int(made.submit_time.max()) - int(made.submit_time.min()) < 31 * 86_400
    assert any("synthetic" in line for line in made.comments)
    assert run("synthetic", "--seed", 8, scheduler="fcfs")["mean_wait_s"] != told["mean_wait_s"]
