"""`ramp slurm` against outputs of Slurm 22.05 (sinfo, squeue) and the columns of Slurm on Blue Gene."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError
from simulation.cli.machines import smap
from simulation.cli.slurm import slurm_command
from simulation.machine_files import load_machine
from simulation.machines.bluegene.slurm_commands import SINFO, SQUEUE, formatted
from simulation.queueing.trace import header_line

SINFO_OUTPUT = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE BP_LIST
debug*       up   infinite      1   resv alpha4
debug*       up   infinite      7   plnd alpha[5-8,12,14-15]
"""
SQUEUE_OUTPUT = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES BP_LIST(REASON)
                39     debug     held     root PD       0:00      1 (JobHeldUser)
                35     debug    fixed     root  R       1:44      3 alpha[1-3]
"""
"""As recorded, but for the last column's name, which is NODELIST on other machines than Blue Gene."""


def run(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(slurm_command, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize(
    ("command", "layout", "letters", "output"),
    [("sinfo", SINFO, "PalDtN", SINFO_OUTPUT), ("squeue", SQUEUE, "iPjutMDR", SQUEUE_OUTPUT)],
)
def test_the_formats_are_those_of_slurm(command: str, layout: str, letters: str, output: str) -> None:
    records = [dict(zip(letters, line.split(), strict=True)) for line in output.splitlines()[1:]]
    assert "\n".join(formatted(command, layout, records)) + "\n" == output
    with pytest.raises(ConfigurationError, match="unknown field %z"):
        formatted(command, "%z", records)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A torus of 8 that boots until 200 s and is freed from 900 s on, a job that waits for it, and bgl733 down."""
    job = {"job_number": 1, "submit_time": 0, "start_time": 10, "boot_time": 20, "ready_time": 200, "done_time": 900,
           "end_time": 1200, "connection": ["torus"] * 3, "nodes": "bgl[000x111]",
           "links": {"x": [0, 2], "y": [0, 1, 2, 3], "z": [0, 1, 2, 3]}}  # fmt: skip
    late = {"job_number": 2, "submit_time": 5, "start_time": 1200, "end_time": 1300, "nodes": "bgl[000x733]"}
    out = {"out": "down", "nodes": "bgl733", "start_time": 100, "end_time": None, "reason": "failed"}
    rows = [header_line(load_machine("bgl-slurm"), "bgl-slurm"), job, late, out]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "t.jsonl")


def test_a_trace_as_slurm_shows_it(trace: str) -> None:
    at = ("--trace", trace, "--at", 150)
    lines = run(*at, "sinfo", "-h").splitlines()
    assert lines.pop(1).startswith("pbatch*      up   infinite    119   idle bgl[")
    assert lines == [
        "pbatch*      up   infinite      8  alloc bgl[000x111]",
        "pbatch*      up   infinite      1   down bgl733",
        "pdebug       up   infinite      4  alloc bgl[000x011]",
        "pdebug       up   infinite     12   idle bgl[002x033,020x031]",
    ]
    assert run(*at, "squeue", "-h", "-o", "%i|%t|%T|%M|%D|%R|%b") == (
        "2|PD|PENDING|0:00|128|(Resources)|-\n1|CF|CONFIGURING|2:20|8|bgl[000x111]|RMP1\n"
    )
    assert len(run(*at, "sinfo", "-N", "-h").splitlines()) == 128 + 16
    (node,) = json.loads(run(*at, "--json", "scontrol", "show", "node", "bgl733"))
    assert (node["State"], node["CPUTot"], node["Partitions"]) == ("DOWN", "1024", "pbatch")
    (job,) = json.loads(run(*at, "--json", "scontrol", "show", "job", 1))
    assert (job["Connection"], job["Block_ID"], job["StartTime"]) == ("torus", "RMP1", "1970-01-01T00:00:10")
    assert run(*at, "scontrol", "-o", "show", "partition", "pdebug") == (
        "PartitionName=pdebug Default=NO MaxTime=UNLIMITED Nodes=bgl[000x033] State=UP TotalCPUs=16384 TotalNodes=16\n"
    )
    assert run(*at, "scontrol", "show", "job", 7, code=1) == "Job 7 not found\n"


@pytest.mark.parametrize(
    ("second", "block", "job"),
    [(10, "CONFIG", "CF"), (20, "BOOTING", "CF"), (200, "BUSY", "R"), (900, "DEALLOC", "CG")],
)
def test_a_block_has_a_life(trace: str, second: int, block: str, job: str) -> None:
    shown = run("--trace", trace, "--at", second, "sinfo", "-b").splitlines()
    assert shown[0].split() == ["BG_BLOCK", "NODES", "OWNER", "STATE", "CONNECTION", "USE"]
    assert shown[1].split() == ["RMP1", "8", "-", block, "TORUS", "COPROCESSOR"]
    assert run("--trace", trace, "--at", second, "squeue", "-h", "-o", "%t").splitlines()[-1] == job


def test_a_static_layout_lists_its_blocks_once(tmp_path: Path) -> None:
    """Block RMP003 has a job and RMP002 is in the way of none; midplane 400 is down; another job is tried."""
    job = {"job_number": 1, "nodes": "bgl[620x723]", "connection": ["mesh"] * 3, "block": "RMP003",
           "links": {"x": [12], "y": [], "z": [0, 1, 2]}}  # fmt: skip
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"jobs": [job], "down": "bgl400"}))
    assert run("--machine", "bgl-static", "--state", state, "sinfo", "-b", "-h", "-o", "%b|%D|%t|%c").splitlines() == [
        "RMP000|64|FREE|TORUS", "RMP001|32|ERROR|TORUS", "RMP002|16|FREE|MESH", "RMP003|8|BUSY|MESH",
        "RMP004|4|FREE|MESH", "RMP005|2|FREE|MESH", "RMP006|1|FREE|TORUS", "RMP007|1|FREE|TORUS",
        "RMP008|128|ERROR|TORUS",
    ]  # fmt: skip
    words = ["bgl-static", "--state", str(state), "-D", "b", "--test-only", "-N 512"]
    table = [line[20:].split() for line in CliRunner().invoke(smap, words, catch_exceptions=False).output.splitlines()]
    blocks = {row[2]: (row[0], row[3], row[4]) for row in table if row}
    assert [row[2] for row in table if row] == ["BG_BLOCK", *(f"RMP00{number}" for number in range(9))]
    assert (blocks["RMP003"], blocks["RMP006"]) == (("A", "BUSY", "-"), ("B", "BUSY", "--test-only"))
    assert {blocks[f"RMP00{number}"] for number in (0, 2, 4, 5, 7)} == {("-", "FREE", "-")}
    tried = ("--machine", "bgl-static", "--state", state, "srun", "--test-only")
    assert "on bgl[630x731] in partition" in run(*tried, "-N", 512 * 3)
    assert run(*tried, "-N", 512 * 65, code=1) == "allocation failure: Requested node configuration is not available\n"


def test_a_job_is_tried(trace: str) -> None:
    at = ("--trace", trace, "--at", 300, "srun", "--test-only")
    assert run(*at, "-g", "2x2x2") == (
        "srun: Job 3 to start at 1970-01-01T00:05:00 using 8192 processors on bgl[022x133] in partition pbatch\n"
    )
    assert "start at Unknown" in run("--trace", trace, "--at", 1e18, *at[4:], "-g", "2x2x2")
    assert run(*at, "-g", "8x4x4", code=1) == "allocation failure: Requested node configuration is not available\n"
    assert run(*at, "-g", "7x4x4", "--conn-type=MESH", code=1) == "allocation failure: Requested nodes are busy\n"
    assert "Missing option '--test-only'" in run("srun", "-g", "2x2x2", "a.out", code=2)


def test_a_machine_state_is_changed_and_everything_else_is_only_read(tmp_path: Path, trace: str) -> None:
    state = tmp_path / "state.json"
    jobs: list[dict[str, Any]] = [{"job_number": 1, "nodes": "bgl[000x111]"}, {"job_number": 2, "nodes": "bgl200"}]
    state.write_text(json.dumps({"jobs": jobs}))
    on = ("--state", state)
    run(*on, "scontrol", "update", "NodeName=bgl[000x001]", "State=DRAIN", "Reason=fan")
    run(*on, "scontrol", "update", "NodeName=bgl300", "State=down")
    assert run(*on, "sinfo", "-h", "-o", "%t %D").split() == ["drng", "2", "alloc", "7", "idle", "118", "down", "1"]
    run(*on, "scancel", 1)
    run(*on, "scontrol", "update", "NodeName=bgl001", "State=RESUME")
    assert run(*on, "sinfo", "-h", "-o", "%t %D").split() == ["drain", "1", "alloc", "1", "idle", "125", "down", "1"]
    assert run(*on, "scancel", 1, code=1).startswith("scancel: error: Kill job error on job id 1: Invalid job id")
    for words in (("update", "NodeName=bgl300"), ("update", "NodeName=bgl300", "State=BROKEN")):
        with pytest.raises(ConfigurationError, match="expected"):
            run(*on, "scontrol", *words)
    for words in (("scontrol", "update", "NodeName=bgl000", "State=DRAIN"), ("scancel", "1")):
        with pytest.raises(ConfigurationError, match="need a machine state"):
            run("--trace", trace, "--at", 300, *words)
