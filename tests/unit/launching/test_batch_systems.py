"""Jobs that the worker submits to batch systems, and orders that wait in queues."""

import base64
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from ramp.agents.building import finding_variables
from ramp.batch.commands import Completed
from ramp.batch.waiting.job_queue import AccountRunner, runner_of
from ramp.errors import BatchSystemError, ConfigurationError
from ramp.launching import worker
from ramp.launching.acting import Acting
from ramp.launching.queue_script import queue_script
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import plugin_settings
from tests.tiny_market import tiny_market
from tests.unit.launching.keeping import WORKER, answer_to

SECOND = 1_000_000


def config(tmp_path: Path, launching: str, plugin: str = "slurm", options: str = "{}", account: str = "alice1") -> Any:
    path = tmp_path / "market.toml"
    machine = f'plugin = "{plugin}"\noptions = {options}\n'
    market = tiny_market({"alice": 0}, prices={"site": (2, 1)}, cores=8, machine=machine)
    path.write_text(f'[launching]\n{launching}\n[accounts]\nalice = "{account}"\n{market}')
    return load_config(path)


# -- what Slurm prints -------------------------------------------------------------------------------------------------


RESERVED = "ReservationName=ramp_big1.o Nodes=x[1-2] NodeCnt=2 CoreCnt=4 PartitionName=debug Flags=SPEC_NODES\n"


@pytest.mark.parametrize(
    ("parameters", "of_partition", "memory"),
    [
        ("CR_CORE_MEMORY", "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED", 100),
        ("CR_CORE", "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED", 0),
        ("CR_CORE_MEMORY", "DefMemPerCPU=100 MaxMemPerNode=UNLIMITED", 0),
        ("CR_CORE_MEMORY", "DefMemPerNode=UNLIMITED MaxMemPerCPU=50", 0),
    ],
)
def test_a_job_asks_slurm_for_the_memory_of_its_cores_unless_the_site_has_a_default(
    parameters: str, of_partition: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Slurm 22.05 prints; without it a job wants all memory of its nodes, and waits beside local jobs."""
    config = "DefMemPerNode           = UNLIMITED\nMaxMemPerNode           = UNLIMITED\n"
    said = {
        "config": f"{config}SelectTypeParameters    = {parameters}\n",
        "reservation": RESERVED,
        "partition": f"PartitionName=debug {of_partition} TRES=cpu=16\n",
    }

    def printed(command: list[str]) -> str:
        return "1000 8\n800 8\n" if command[0] == "sinfo" else next(said[word] for word in command if word in said)

    monkeypatch.setattr(worker, "printed", printed)
    assert worker.slurm_memory("ramp_big1.o") == memory


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("sbatch: error: Batch job submission failed: Access denied to requested reservation", "not yet"),
        ("Unable to run job: error: no suitable queues. Exiting.", "not yet"),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", "doubt"),
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", "doubt"),
        ('unable to send message to qmaster using port 6444 on host "localhost": got send error', "doubt"),
        ("sbatch: error: Batch job submission failed: Requested reservation is invalid", "no"),
        ("the job duration is longer than duration of the advance reservation id 22", "no"),
    ],
)
def test_refusals_are_told_from_doubt(said: str, kind: str) -> None:
    found = "doubt" if worker.DOUBT.search(said) else "not yet" if worker.NOT_YET.search(said) else "no"
    assert found == kind


# -- settings ----------------------------------------------------------------------------------------------------------


def test_the_agents_own_account_runs_nothing_on_a_batch_system(tmp_path: Path) -> None:
    for executor in ("slurm", "handover"):
        with pytest.raises(ConfigurationError, match="simulated"):
            config(tmp_path, f'executor = "{executor}"', account="@own")


def test_paths_are_full(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"launching\.folder.*jobs"):
        config(tmp_path, 'executor = "slurm"\nfolder = "jobs"')


def test_slots_that_are_handed_over_launch_nothing(tmp_path: Path) -> None:
    terms = config(tmp_path, 'executor = "handover"').resources[0].launching
    assert not terms.launches
    assert terms.accounts == {"alice@localhost": "alice1"}


def test_a_batch_system_is_found_as_its_plug_in_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def variables(plugin: str, options: str) -> Any:
        return finding_variables(config(tmp_path, 'executor = "none"', plugin, options).resources[0])

    assert variables("slurm", '{ partition = "debug", conf = "/x/slurm.conf" }') == {"SLURM_CONF": "/x/slurm.conf"}
    monkeypatch.setenv("SLURM_CONF", "/y/slurm.conf")
    assert variables("slurm", '{ partition = "debug" }') == {"SLURM_CONF": "/y/slurm.conf"}
    assert variables("steady", "{}") == {}
    found = variables(
        "gridengine", '{ root = "/ge", commands = "/ge/bin", environment = { SGE_QMASTER_PORT = "6444" } }'
    )
    assert found["PATH"] == "/ge/bin"
    assert (found["SGE_ROOT"], found["SGE_CELL"], found["SGE_QMASTER_PORT"]) == ("/ge", "default", "6444")


def test_jobs_in_a_queue_find_the_queue_as_its_plug_in_does(tmp_path: Path) -> None:
    """Its plug-in is told by what buyers' accounts are acted as, for it submits the jobs in which theirs will run."""
    (tmp_path / "slurm.conf").touch()
    queue = f'{{ partition = "debug", conf = "{tmp_path}/slurm.conf" }}'
    launching = 'executor = "slurm"\nworker = "/opt/worker"\nfolder = "/scratch/jobs"'
    found = config(tmp_path, launching, "queue-bound", f'{{ system = "slurm", queue = {queue} }}')
    (resource,) = found.resources
    assert finding_variables(resource) == {"SLURM_CONF": f"{tmp_path}/slurm.conf"}
    acting = plugin_settings(resource, 0, None).acting
    assert (acting["worker"], acting["folder"]) == ("/opt/worker", "/scratch/jobs")
    queue = '{ queue = "all.q", parallel_environment = "mpi", root = "/opt/sge", commands = "/opt/sge/bin" }'
    found = config(tmp_path, 'executor = "gridengine"', "queue-bound", f'{{ system = "gridengine", queue = {queue} }}')
    told = finding_variables(found.resources[0])
    assert (told["SGE_ROOT"], told["PATH"]) == ("/opt/sge", "/opt/sge/bin")
    simulated = config(tmp_path, 'executor = "local"', "queue-bound", '{ system = "simulated" }', "@own")
    assert finding_variables(simulated.resources[0]) == {}
    assert plugin_settings(simulated.resources[0], 0, None).acting == {}


# -- the worker and commands of a batch system -------------------------------------------------------------------------

LIMIT_S = 90.0
KEY, NUMBER = "offer-1", "17"


class Site:
    """A folder of jobs, and commands of a Slurm that has one job, number 17, in a file's state."""

    system = "slurm"
    slot: ClassVar = {"reservation_id": NUMBER, "queue_key": KEY}

    def __init__(self, folder: Path) -> None:
        self.root = folder / "jobs"
        self.commands = folder / "commands"
        self.commands.mkdir()
        self.state = folder / "state"
        self.state.write_text("RUNNING\n")
        self.command("squeue", f"cat {self.state}")

    def command(self, name: str, does: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)

    def ask(self, verb: str, job_id: str = "job-1", does: str = "true", **more: Any) -> dict[str, Any]:
        now = int(time.time())
        job = {"job_id": job_id, "resource": "res@localhost", **self.slot, "cores": 4}
        job |= {"begin_at": (now + more.pop("after", 0)) * SECOND, "end_at": (now + 600) * SECOND}
        job |= {"arguments": ["sh", "-c", does], "environment": [["RAMP_UNIT", "1"]]}
        asked = {"version": 1, "verb": verb, "executor": self.system, "root": str(self.root), "job": job, **more}
        asked["variables"] = {"PATH": str(self.commands)}
        return answer_to(asked)

    def until(self, state: str, job_id: str = "job-1") -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while (found := self.ask("look_up", job_id)["seen"])["state"] != state:
            assert time.monotonic() < end, found
            time.sleep(0.3)  # each look is a process
        seen: dict[str, Any] = found
        return seen


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


class Reserved(Site):
    """A slot in a reservation."""

    slot: ClassVar = {"reservation_id": "R-1", "gres": "none"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = self.root / "res@localhost" / "job-1"
        self.state.write_text("")
        self.submitted = folder / "submitted"
        self.command("sbatch", f'echo "$@" >> {self.submitted}; echo "4711 PENDING Priority" > {self.state}')
        for name in ("scontrol", "scancel"):
            self.command(name, "exit 1")


@pytest.fixture
def reserved(tmp_path: Path) -> Reserved:
    return Reserved(tmp_path)


def test_a_job_is_submitted_once_and_what_waits_is_told(reserved: Reserved) -> None:
    for _ in range(2):
        seen = reserved.ask("submit")["seen"]
        assert (seen["state"], seen["detail"], seen["native_id"]) == ("queued", "Priority", "4711")
    (line,) = reserved.submitted.read_text().splitlines()
    words = line.split()
    assert {"--job-name=ramp_job-1", "--reservation=R-1", "--ntasks=4", "--nodes=1-4", "--gres=none"} <= {*words}
    assert words[-1] == str(reserved.folder / "run")
    reserved.state.write_text("4711 PENDING ReqNodeNotAvail, May be reserved for other job\n")
    assert reserved.ask("look_up")["seen"]["detail"] == "ReqNodeNotAvail, May be reserved for other job"


def test_a_job_of_grid_engine_is_submitted_once_into_the_environment_of_its_slot(reserved: Reserved) -> None:
    reserved.system, reserved.slot = "gridengine", {"reservation_id": "63"}
    reserved.command("qrstat", "echo 'granted_parallel_environment      mpi slots 4'")
    reserved.command("qstat", f"cat {reserved.state}")
    listed = [
        f"<job_list><JB_job_number>{number}</JB_job_number><JAT_prio>0.5</JAT_prio>\n<JB_name>{name}</JB_name>"
        f"<JB_owner>me</JB_owner>\n<state>{state}</state></job_list>"
        for number, name, state in ((7, "ramp_job-2", "r"), (8, "ramp_job-1", "qw"))
    ]
    reserved.state.write_text(listed[0])
    reserved.command("qsub", f"echo \"$@\" >> {reserved.submitted}; echo '{listed[1]}' > {reserved.state}")
    for _ in range(2):
        seen = reserved.ask("submit")["seen"]
        assert (seen["state"], seen["native_id"]) == ("queued", "8")
    (line,) = reserved.submitted.read_text().splitlines()
    assert all(each in line for each in ("-N ramp_job-1 ", "-ar 63 ", "-pe mpi 4 ", "-b y "))
    reserved.state.write_text(listed[1].replace("qw", "Eqw"))
    assert "state Eqw" in reserved.ask("look_up")["seen"]["detail"]


@pytest.mark.parametrize("text", ["1 x", "9" * 4000, "1 " + "9" * 40 + ".1", "-1 1000000020.5", ""])
def test_what_a_job_writes_about_itself_makes_no_look_fail(reserved: Reserved, text: str) -> None:
    reserved.ask("submit")
    for name in ("began", "ended"):
        (reserved.folder / name).write_text(text)
    assert reserved.ask("look_up")["seen"]["state"] == "queued"


def test_what_is_refused_is_told_in_the_systems_words(reserved: Reserved) -> None:
    reserved.command("sbatch", "echo 'Invalid wckey' >&2; exit 1")
    seen = reserved.ask("submit")["seen"]
    assert (seen["state"], seen["detail"]) == ("failed", "Slurm does not take it: Invalid wckey")


@pytest.mark.parametrize(
    ("command", "does"),
    [("squeue", "echo oh >&2; exit 1"), ("squeue", "echo '?'"), ("sbatch", "echo timed out; exit 1")],
)
def test_a_command_that_fails_leaves_the_job_in_doubt(reserved: Reserved, command: str, does: str) -> None:
    reserved.command(command, does)
    assert "error" in reserved.ask("submit")


def test_a_job_that_begins_and_ends_during_a_look_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "started").mkdir()
    read = worker.text_of

    def read_before_it_begins(folder: Path, name: str) -> str:
        found = read(folder, name)
        (folder / "began").write_text("1800000001.0")
        (folder / "ended").write_text("3 1800000002.0")
        return found

    monkeypatch.setattr(worker, "text_of", read_before_it_begins)
    forgotten: Any = SimpleNamespace(lives=lambda *_: (None, "", ""))
    seen = worker.seen(tmp_path, forgotten, {"cores": 4})
    assert seen is not None
    assert (seen["state"], seen["exit_code"]) == ("failed", 3)


def test_what_nobody_lists_was_lost_unless_it_has_begun(reserved: Reserved) -> None:
    reserved.ask("submit")
    reserved.state.write_text("")
    assert reserved.ask("look_up")["seen"] is None
    (reserved.folder / "started").mkdir()
    (reserved.folder / "began").write_text("1000000010.5")
    seen = reserved.ask("look_up")["seen"]
    assert (seen["state"], seen["cores"], seen["started_at"]) == ("failed", 4, 1_000_000_010_500_000)
    before = reserved.submitted.read_text()
    reserved.ask("submit")
    assert reserved.submitted.read_text() == before, "what has begun is not submitted again"


def test_who_starts_a_job_that_is_cancelled_starts_nothing(reserved: Reserved) -> None:
    reserved.ask("submit")
    reserved.state.write_text("")
    reserved.ask("cancel")
    assert subprocess.run([reserved.folder / "run"]).returncode == 126
    assert not (reserved.folder / "started").exists()


def test_a_jobs_own_variables_and_its_systems_are_all_that_it_sees(reserved: Reserved) -> None:
    reserved.ask("submit", does="env")
    system = {"SLURM_JOB_ID": "7", "SLURM_ODD": "two 'words'; $HOME", "SLURM_EXPORT_ENV": "NONE", "NSLOTS": "4"}
    secret = {"SECRET": "x\nSLURM_NOT=1", "PATH": os.environ["PATH"]}
    subprocess.run([reserved.folder / "run"], env={**system, **secret}, check=True)
    seen = dict(line.split("=", 1) for line in (reserved.folder / "stdout").read_text().splitlines())
    assert {name: seen.get(name) for name in ("SLURM_JOB_ID", "SLURM_ODD", "NSLOTS")} == {
        name: system[name] for name in ("SLURM_JOB_ID", "SLURM_ODD", "NSLOTS")
    }
    assert not {"SECRET", "SLURM_EXPORT_ENV"} & set(seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a folder of somebody else")
def test_a_folder_that_somebody_else_has_made_is_refused(reserved: Reserved) -> None:
    reserved.root.mkdir()
    os.chown(reserved.root, 12345, 12345)
    assert "not a folder of the account's own" in reserved.ask("submit")["error"]


@pytest.fixture
def started(site: Site) -> Iterator[subprocess.Popen[bytes]]:
    """The job in the queue, as the batch system starts it."""
    script = queue_script(str(site.root), KEY, 300)
    process = subprocess.Popen(["/bin/sh", "-c", script], env={**os.environ, "NSLOTS": "4"}, start_new_session=True)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_what_is_ordered_runs_in_it_once_is_cancelled_alone_and_ends_with_it(site: Site, started: Any) -> None:
    for job_id, does in (("job-1", "echo $RAMP_UNIT; exit 3"), ("job-2", "sleep 200 & wait"), ("job-3", "sleep 200")):
        assert site.ask("submit", job_id, does)["seen"]["native_id"] == NUMBER
    assert site.ask("submit", "job-4", after=500)["seen"]["state"] == "queued"
    seen = site.until("failed")
    assert (seen["exit_code"], seen["cores"], seen["native_id"]) == (3, 4, NUMBER)
    read = site.ask("read", name="stdout", offset=0)
    assert base64.b64decode(read["data"]) == b"1\n"
    assert site.ask("submit")["seen"]["exit_code"] == 3  # again runs nothing again
    site.until("running", "job-2")
    site.ask("cancel", "job-2")
    assert site.until("cancelled", "job-2")["exit_code"] == -signal.SIGTERM
    assert site.until("running", "job-3")["exit_code"] is None
    started.send_signal(signal.SIGTERM)  # as batch systems do before they kill
    assert started.wait(LIMIT_S) == 0
    site.state.write_text("TIMEOUT\n")
    assert site.until("failed", "job-3")["exit_code"] == -signal.SIGTERM
    assert site.until("failed", "job-4")["detail"] == "job 17 of the queue has ended"
    assert not (site.root / "res@localhost" / "job-4" / "started").exists()


@pytest.mark.slow
def test_of_what_the_queue_says_only_the_sure_is_believed(site: Site) -> None:
    assert site.ask("look_up")["seen"] is None  # nothing was ordered
    assert site.ask("submit")["seen"]["state"] == "queued"
    site.command("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert "Unable to contact" in site.ask("look_up")["error"]
    site.command("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert site.until("failed")["detail"] == "job 17 of the queue has ended"


def test_the_worker_runs_no_other_command_than_those_of_jobs(site: Site) -> None:
    site.command("sbatch", 'echo "$1 $(cat)"; echo oh >&2; exit 4')
    command = {"stdin": "script", "limit_s": 30}
    said = site.ask("command", argv=["sbatch", "--hold"], **command)
    assert (said["code"], said["stdout"], said["stderr"]) == (4, "--hold script\n", "oh\n")
    for argv in (["sh", "-c", "true"], ["srun", "true"], []):
        assert "no command by which jobs are submitted" in site.ask("command", argv=argv, **command)["error"]
    site.command("scancel", "exec sleep 60")
    assert site.ask("command", argv=["scancel", "1"], stdin="", limit_s=0.2)["timed_out"] == 0.2


class ThisAccount(Acting):
    """Acts as whoever runs the test."""

    def command(self, account: str) -> Any:
        return WORKER, ""


def test_a_command_as_somebody_else_says_what_it_says_or_why_not(site: Site) -> None:
    def run(name: str, limit: float = 30.0) -> Completed:
        acting = ThisAccount("", "")
        return AccountRunner(acting, "alice1", {"PATH": str(site.commands)})((name, "7"), "in", limit)

    site.command("sbatch", 'echo "$1 $(cat)"; exit 1')
    assert run("sbatch") == Completed(("sbatch", "7"), 1, "7 in\n", "")
    with pytest.raises(BatchSystemError, match="is no command by which"):
        run("id")
    site.command("scancel", "exec sleep 60")
    with pytest.raises(BatchSystemError):
        run("scancel", 0.2)
    with pytest.raises(BatchSystemError, match="no account 'nobody-here'"):
        AccountRunner(Acting("/worker", "/python"), "nobody-here", {})(("scancel", "7"))
    with pytest.raises(BatchSystemError, match="no way to act as account alice1"):
        runner_of(run, {}, {}, 1.0)("alice1")  # type: ignore[arg-type]
