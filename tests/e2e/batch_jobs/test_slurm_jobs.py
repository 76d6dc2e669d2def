"""Jobs in reservations of a real Slurm cluster, as another account; found again, and run once."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from simulation.emulated_slurm import EmulatedCluster
from tests.e2e.batch_jobs.job_at_site import JobAtSite
from tests.e2e.batch_jobs.psij_environment import ACCOUNT, folder_of_the_account, python
from tests.e2e.batch_jobs.snippets import run_as_buyer, snippet_for
from tests.e2e.slurm.cluster_fixture import CORES, cleared, running_cluster, saved, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
__all__ = ["python"]  # a fixture

NODES = 4
GPUS = "GresTypes=gpu\nNodeName=DEFAULT Gres=gpu:t4:2\n"


@pytest.fixture(scope="module")
def one_cluster() -> Iterator[EmulatedCluster]:
    with running_cluster(
        "jo", NODES, GPUS, {"gres.conf": "Name=gpu Type=t4 File=/dev/null\nName=gpu Type=t4 File=/dev/zero\n"}
    ) as started:
        yield started


@pytest.fixture
def cluster(one_cluster: EmulatedCluster) -> EmulatedCluster:
    return cleared(one_cluster)


@pytest.fixture
def job_on(cluster: EmulatedCluster) -> Iterator[Callable[..., JobAtSite]]:
    """A job of the reservation's sixteen cores."""
    with folder_of_the_account() as root:

        def job(name: str, command: str, **more: Any) -> JobAtSite:
            variables = {"SLURM_CONF": str(cluster.conf)}
            return JobAtSite("slurm", variables, root, name, "ramp_r1", 2 * CORES, command, **more)

        yield job


def reserve(cluster: EmulatedCluster, after: int = 0, user: str = ACCOUNT) -> None:
    """Two whole nodes, as the plug-in reserves them."""
    begin = f"uts{int(time.time()) + after}" if after else "now"
    cluster.run(
        "scontrol", "create", "reservation", "ReservationName=ramp_r1", f"StartTime={begin}", "Duration=10",
        f"Nodes={cluster.name}[1-2]", f"CoreCnt={CORES},{CORES}", f"Users={user}",
    )  # fmt: skip


def begin_now(cluster: EmulatedCluster, *jobs: str) -> None:
    for each in ("ReservationName=ramp_r1", *(f"JobId={job}" for job in jobs)):
        cluster.run("scontrol", "update", each, "StartTime=now")


@pytest.mark.parametrize(("gres", "has"), [("gpu:t4:2", True), ("none", False)])
def test_a_job_has_the_gpus_of_its_request_and_no_others(
    cluster: EmulatedCluster, job_on: Any, gres: str, has: bool
) -> None:
    """On both nodes, as Slurm says."""
    reserve(cluster)
    job = job_on(f"job-{'with' if has else 'without'}", "sleep 600", gres=gres)
    native = job.until("running")["native_id"] if job.seen("submit") else ""
    shown = cluster.run("scontrol", "-d", "-o", "show", "job", native)
    assert re.findall(r"Nodes=\S+ CPU_IDs=\S+ Mem=\d+ GRES=(\S*)", shown) == ["gpu:t4:2(IDX:0-1)" if has else ""]
    job.ask("cancel")


def test_a_job_runs_on_all_that_was_bought(cluster: EmulatedCluster, job_on: Any) -> None:
    """Sixteen tasks on two nodes of eight cores; it can start its tasks there, and sees nothing of who submitted it."""
    reserve(cluster)
    job = job_on("job-1", 'id -un; echo "unit $RAMP_UNIT"; srun sh -c "echo \\$SLURMD_NODENAME"; env; exit 3')
    native = job.seen("submit")["native_id"]
    assert "Reservation=ramp_r1" in cluster.run("scontrol", "-o", "show", "job", native)
    seen = job.until("failed")
    assert (seen["exit_code"], seen["cores"]) == (3, 2 * CORES), job.output("stderr")
    said = job.output().splitlines()
    assert said[:2] == [ACCOUNT, "unit 1"]
    assert sorted(said[2:18]) == [f"{cluster.name}{node}" for node in (1, 2) for _ in range(CORES)]
    known = {line.partition("=")[0] for line in said[18:]}
    own = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "PWD", "RAMP_UNIT", "TMPDIR", "_", "SHLVL", "OLDPWD"}
    assert {name for name in known if not name.startswith("SLURM")} <= own


def test_a_job_is_found_by_its_name_and_not_submitted_again(cluster: EmulatedCluster, job_on: Any) -> None:
    reserve(cluster)
    job = job_on("job-2", "sleep 300")
    native = job.seen("submit")["native_id"]
    assert job.seen("submit")["state"] in ("queued", "running")
    assert cluster.run("squeue", "-h", "-t", "all", "-n", f"ramp_{job.folder.name}", "-o", "%A").split() == [native]
    job.until("running")
    job.ask("cancel")
    assert job.until("cancelled")["state"] == "cancelled"


def test_a_waiting_job_that_the_system_has_lost_is_submitted_again_and_runs_once(
    cluster: EmulatedCluster, job_on: Any
) -> None:
    reserve(cluster, after=300)
    job = job_on("job-3", "echo run >> runs; cat runs", after=300)
    first = job.seen("submit")
    assert first["state"] == "queued"
    cluster.run("scontrol", "update", f"jobid={first['native_id']}", "jobname=lost")
    assert job.seen()["state"] == "unknown"
    second = job.seen("submit")  # beside the first, which nobody can name any more
    assert len(cluster.run("squeue", "-h").splitlines()) == 2
    begin_now(cluster, first["native_id"], second["native_id"])
    assert job.until("done")["exit_code"] == 0
    wait_for(lambda: not cluster.run("squeue", "-h").split(), "both jobs end")
    assert job.output() == "run\n"
    assert job.output("runs") == "run\n"


def test_a_reservation_that_is_handed_over_a_moment_later_is_waited_for(cluster: EmulatedCluster, job_on: Any) -> None:
    reserve(cluster, user="root")
    job = job_on("job-5", "true")
    assert "Access denied" in job.ask("submit")["error"]
    assert job.seen()["state"] == "unknown"
    cluster.run("scontrol", "update", "ReservationName=ramp_r1", f"Users={ACCOUNT}")
    job.seen("submit")
    job.until("done")


def test_a_controller_that_is_away_leaves_the_job_in_doubt(cluster: EmulatedCluster, job_on: Any) -> None:
    """Killed between submission and start: neither lost nor run twice."""
    reserve(cluster, after=300)
    job = job_on("job-7", "echo run >> runs; cat runs", after=300)
    native = job.seen("submit")["native_id"]
    saved(cluster)
    cluster.processes["slurmctld"].kill()
    cluster.processes["slurmctld"].wait()
    assert "squeue" in job.ask("look_up")["error"]
    cluster.start_controller()
    wait_for(lambda: "error" not in job.ask("look_up"), "the controller answers")
    begin_now(cluster, native)
    job.until("done")
    assert job.output("runs") == "run\n"


@pytest.mark.parametrize("style", ["sbatch", "psij", "parsl"])
def test_a_snippet_submits_into_the_reservation(
    cluster: EmulatedCluster, request: pytest.FixtureRequest, style: str
) -> None:
    """As `ramp show ID --as STYLE` prints it, run by its buyer."""
    reserve(cluster)
    text = snippet_for(style, "ramp_r1", 2 * CORES)
    python = "" if style == "sbatch" else str(request.getfixturevalue("python"))
    argv = [python, "-I", "-c", text] if python else ["sh", "-c", text]
    if style == "parsl":
        if subprocess.run([python, "-I", "-c", "import parsl"], capture_output=True).returncode:
            pytest.skip("Parsl is not installed beside PSI/J (make psij)")
        argv[-1] += "\nprovider.script_dir = '.'\nassert provider.submit('sleep 60', 1)"
    with folder_of_the_account() as folder:
        run_as_buyer(argv, folder, {"SLURM_CONF": str(cluster.conf)})
        jobs = cluster.run("squeue", "-h", "-t", "all", "-o", "%v %C %u").split("\n")
        assert f"ramp_r1 {2 * CORES} {ACCOUNT}" in jobs
        wait_for(lambda: "R ramp_r1" in cluster.run("squeue", "-h", "-o", "%t %v"), "it runs")
