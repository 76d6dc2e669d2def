"""The script that the PSI/J executor of examples/psij_gridengine gives to qsub; run by a shell, for what it does."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "examples" / "psij_gridengine" / "src"))

from ramp_psij_gridengine.submit_script import SubmitScript, job_name


def _options(script):
    return [line.removeprefix("#$ ") for line in script.text().splitlines() if line.startswith("#$ ")]


def test_options_of_a_job_in_a_reservation():
    script = SubmitScript("/work", ["true"], "sum", "/data", slots=4, parallel_environment="mpi", seconds=90,
                          queue="all.q", reservation="63", inherit=False, options={"P": "physics"})  # fmt: skip
    assert _options(script) == ["-S /bin/bash", "-N sum", "-o /dev/null", "-e /dev/null", "-r n", "-wd /data",
                                "-pe mpi 4", "-l h_rt=90", "-q all.q", "-ar 63", "-P physics"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sum", "sum"),
        ("9fine", "psij-9fine"),
        ("a b/c:d", "a-b-c-d"),
        ("", "psij"),
        (None, "psij"),
        ("x" * 99, "x" * 64),
    ],
)
def test_names_that_grid_engine_takes(text, name):
    # Grid Engine 8.1.9: `/` and `:` refused, a leading digit refused, a space: exit code 0 and no job
    assert job_name(text) == name


@pytest.mark.parametrize(
    "changes",
    [
        {"directory": "/two words"},
        {"queue": 'all.q" -P x'},
        {"reservation": "63 -P x"},
        {"reservation": "ramp_key"},
        {"options": {"P": "a\n#$ -u root"}},
        {"options": {"P x": "a"}},
        {"environment": {"A;B": "c"}},
        {"slots": 2},
    ],
)
def test_what_cannot_be_said_is_refused(changes):
    with pytest.raises(ValueError, match=r".+"):
        SubmitScript("/work", ["true"], **changes).text()


def test_the_command_runs_as_it_was_given_and_leaves_its_exit_code(tmp_path):
    script = SubmitScript(str(tmp_path), ["/bin/sh", "-c", 'echo "$WORDS"; cat "$PSIJ_NODEFILE"; exit 5'],
                          environment={"WORDS": "$HOME 'x'"})  # fmt: skip
    hosts = tmp_path / "hosts"
    hosts.write_text("node1 2 all.q@node1 UNDEFINED\nnode2 1 all.q@node2 UNDEFINED\n")
    subprocess.run(
        ["bash", "-c", script.text()], env={"JOB_ID": "7", "PE_HOSTFILE": str(hosts), "PATH": "/bin:/usr/bin"}
    )
    assert (tmp_path / "7.out").read_text() == "$HOME 'x'\nnode1\nnode1\nnode2\n"
    assert (tmp_path / "7.ec").read_text() == "5\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["7.ec", "7.out", "hosts"]
