"""Jobs in advance reservations of a real Grid Engine; for PSI/J by the executor of `examples/psij_gridengine`."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.batch_jobs.job_at_site import JobAtSite
from tests.e2e.batch_jobs.psij_environment import ACCOUNT, folder_of_the_account, python
from tests.e2e.batch_jobs.snippets import run_as_buyer, snippet_for
from tests.e2e.gridengine.gridengine_cell import LIBRARY, Cluster, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
__all__ = ["python"]  # a fixture
SLOTS = 8


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(SLOTS) as started:
        started.configure("-Au", f"name ramp_buyer\ntype ACL\nfshare 0\noticket 0\nentries {ACCOUNT}\n")
        started.configure("-Au", "name ramp_market\ntype ACL\nfshare 0\noticket 0\nentries root\n")
        yield started


@pytest.fixture
def reserved(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Makes a reservation of four slots, as the plug-in does, and gives its number."""
    made = []

    def reserve(userset: str = "ramp_buyer") -> str:
        end = time.strftime("%Y%m%d%H%M.%S", time.gmtime(time.time() + 600))
        granted = cluster("qrsub", "-e", end, "-pe", "mpi", "4", "-u", f"@{userset}", "-N", "ramp_slot")
        made.append(granted.split()[3])
        return made[-1]

    yield reserve
    for number in made:
        cluster("qrdel", number)
    wait_until(lambda: not cluster("qstat", "-u", "*"), "all jobs are gone")


@pytest.fixture
def job_on(cluster: Cluster) -> Iterator[Callable[..., JobAtSite]]:
    """A job of four slots."""
    variables = {**cluster.environment, "PATH": str(LIBRARY)}
    with folder_of_the_account() as root:

        def job(name: str, reservation: str, command: str, **more: Any) -> JobAtSite:
            return JobAtSite("gridengine", variables, root, name, reservation, 4, command, **more)

        yield job


def test_a_job_runs_on_all_that_was_bought(job_on: Any, reserved: Any) -> None:
    job = job_on(
        "job-1", reserved(), 'id -un; echo "$RAMP_UNIT $NSLOTS"; cut -d" " -f2 "$PE_HOSTFILE"; exit 3', after=5
    )
    assert job.seen("submit")["native_id"].isdecimal()
    seen = job.until("failed")
    assert (seen["exit_code"], seen["cores"]) == (3, 4), job.output("stderr")
    assert seen["started_at"] >= job.job["begin_at"] - 1_000_000
    assert job.output() == f"{ACCOUNT}\n1 4\n4\n"


def test_a_job_is_found_by_its_name_and_ended(cluster: Cluster, job_on: Any, reserved: Any) -> None:
    job = job_on("job-2", reserved(), "sleep 300")
    native = job.seen("submit")["native_id"]
    assert job.seen("submit")["state"] in ("queued", "running")
    assert [line.split()[0] for line in cluster("qstat", "-u", "*").splitlines()[2:]] == [native]
    job.until("running")
    job.ask("cancel")
    job.until("cancelled")


def test_a_reservation_that_is_handed_over_a_moment_later_is_waited_for(
    cluster: Cluster, job_on: Any, reserved: Any
) -> None:
    job = job_on("job-3", reserved("ramp_market"), "true")
    assert "no suitable queues" in job.ask("submit")["error"]
    cluster("qconf", "-au", ACCOUNT, "ramp_market")
    job.seen("submit")
    job.until("done")


@pytest.mark.parametrize("style", ["qsub", "psij"])
def test_a_snippet_submits_into_the_reservation(
    cluster: Cluster, request: pytest.FixtureRequest, reserved: Any, style: str
) -> None:
    """As `ramp show ID --as STYLE` prints it, run by its buyer."""
    number = reserved()
    text = snippet_for(style, number, 4)
    argv = ["sh", "-c", text.splitlines()[1]]  # the last line is for PBS
    if style == "psij":
        argv = [str(request.getfixturevalue("python")), "-I", "-c", text]
    with folder_of_the_account() as folder:
        run_as_buyer(argv, folder, {**cluster.environment, "PATH": f"{LIBRARY}:/usr/bin:/bin"})
        (line,) = cluster("qstat", "-u", "*").splitlines()[2:]
        assert f"ar_id: {number}" in " ".join(cluster("qstat", "-j", line.split()[0]).split())
        wait_until(lambda: " r " in cluster("qstat", "-u", "*"), "it runs")


def test_a_qmaster_that_hangs_leaves_the_job_in_doubt(cluster: Cluster, job_on: Any, reserved: Any) -> None:
    job = job_on("job-4", reserved(), "echo run >> runs; sleep 20", after=5)
    job.seen("submit")
    assert cluster.master_pid is not None
    os.kill(cluster.master_pid, signal.SIGSTOP)
    try:
        assert "does not answer" in job.ask("look_up")["error"]
    finally:
        os.kill(cluster.master_pid, signal.SIGCONT)
    job.until("done")
    assert job.output("runs") == "run\n"
