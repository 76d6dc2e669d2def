"""Jobs on this computer: launched once, together, given back; of a real account, with the rights of docs/launching.md.

The programs that once got a slot for nothing by changing files in the job's folder run here
under their keeper as the agent starts it: as root, and as another account through `sudo`.
"""

import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ramp
from ramp.cli.main import main
from ramp.client.access import status
from ramp.launching import worker
from ramp.launching.acting import becoming, system_python, worker_inside
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import launched, tiny_market
from tests.unit.launching.keeping import KeptJob
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.e2e

MARKET = """
[market]
resources_per_process = 1

[launching]
executor = "local"
grace_s = 3600

[accounts]
alice = "@own"

[machines.tiny]
cores = 1
plugin = "steady"
options = { load = 0.0 }

[[resources]]
name = "broken"
machine = "tiny"
start_price = 5
minimum_price = 5
accounts = { alice = "ramp-nobody-is-called-so" }

"""
MARKET += tiny_market(
    {"alice": 1_000_000, "bob": 1_000_000},
    prices={"one": (30, 10), "two": (31, 10), "elsewhere": (99, 90)},
    cores=1000,
    machine='plugin = "steady"\noptions = { load = 0.0 }\n',
)
MARKET += 'executor = "none"\n'  # of the last one, `elsewhere`


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    with launched(MARKET) as state:
        yield state


@pytest.fixture(scope="module")
def market(state: Path) -> Iterator[ramp.Market]:
    with ramp.connect(state) as market:
        yield market


def buy(
    market: ramp.Market, *, start: str = "+4s", wall: str = "1h", cores: tuple[int, ...] = (64,), price: int = 70
) -> ramp.Purchase:
    """Slots that begin soon, if not as soon as is wanted."""
    asked = [ramp.request(cores=each, start=start, end="+9h", wall_time=wall, price=price) for each in cores]
    bought = market.submit(*asked, rounds=1)
    assert bought.committed, bought.reason
    return bought


def ended(market: ramp.Market, job_id: str) -> ramp.Job:
    def look() -> ramp.Job | None:
        found = market.job(job_id)
        return found if found.has_ended else None

    found: ramp.Job = until(look, f"{job_id} ends")
    return found


def test_files_of_any_size_go_and_come_back(market: ramp.Market, state: Path, tmp_path: Path, capfd: Any) -> None:
    """A folder of 1 MB goes to the job, its output is followed, and its files are listed and fetched again."""
    inputs, results = tmp_path / "the inputs", tmp_path / "results"
    (inputs / "deep").mkdir(parents=True)
    data = random.Random(1).randbytes(1_000_000)
    (inputs / "deep" / "dätä").write_bytes(data)
    script = inputs / "run.sh"
    script.write_text(
        "#!/bin/sh\necho \"$GREETING\"\nmkdir -p 'out/a b'\ncp 'the inputs/deep/dätä' 'out/a b/dätä'\n"
        "ln -s /etc/passwd out/link\nsleep 2\necho done\n"
    )
    script.chmod(0o755)
    bought = buy(market)
    greeting = {"GREETING": "it's\n$HOME"}
    (job,) = market.launch(bought.request_id, ["./the inputs/run.sh"], inputs=[inputs], environment=greeting)
    states: list[str] = []
    assert b"".join(market.follow_job(job.job_id)) == b"it's\n$HOME\ndone\n"
    assert market.wait_job(job.job_id, lambda found: states.append(found.state)).state == "done"
    assert states == ["done"]
    listed = {each.path: each.size for each in market.job_files(job.job_id)}
    assert listed["stdout"] == len(b"it's\n$HOME\ndone\n")
    assert (listed["out/a b/dätä"], "out/link" in listed) == (len(data), False)
    assert market.fetch_job(job.job_id, results, "out/a b/dätä") == (results / "out/a b/dätä",)
    assert (results / "out/a b/dätä").read_bytes() == data
    for name in ("out/link", "/etc/passwd", "../run", "a b", "ünï", "", "./none", "out", "a" * 300, "a\nb", "\udcff"):
        # by the site, or before it is asked
        with pytest.raises((ramp.MarketRefused, ramp.ConfigurationError)) as refused:
            market.job_output(job.job_id, name)
        assert getattr(refused.value, "code", "") != "no_answer", name
    named = ["jobs", job.job_id, "--state-dir", str(state)]
    capfd.readouterr()
    assert main([*named, "--files", "--json"]) == 0
    assert {each["path"]: each["bytes"] for each in json.loads(capfd.readouterr().out)} == listed
    assert main([*named, "--follow"]) == 0
    assert capfd.readouterr().out == "it's\n$HOME\ndone\n"
    assert main([*named, "--fetch", str(results)]) == 0
    assert (results / "the inputs/run.sh").read_bytes() == script.read_bytes()
    assert [main([*named, "--cancel"]) for _ in range(2)] == [0, 0]
    assert "Command    './the inputs/run.sh'" in capfd.readouterr().out


def test_a_job_outlives_its_agent_and_is_launched_once(market: ramp.Market, state: Path, tmp_path: Path) -> None:
    """kill -9 of the seller between order and start, and again while it runs."""
    script = tmp_path / "once.sh"
    bought = buy(market)
    seller = bought.units[0].resource
    with tempfile.TemporaryDirectory(prefix="ramp-gate-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # for the account that the job runs as
        gate = Path(folder) / "open"
        script.write_text(f"#!/bin/sh\necho run >> runs\nuntil [ -e {gate} ]; do sleep 0.2; done\n")
        (job,) = market.launch(bought.request_id, script=script)
        kill(state, seller)
        until(lambda: answered(market, job.job_id) == "running", "it runs")
        kill(state, seller)
        gate.touch()
        until(lambda: answered(market, job.job_id) == "done", "it is done")
    assert market.job_output(job.job_id, "runs") == b"run\n"
    assert market.job(job.job_id).delivery == "on_time"


def answered(market: ramp.Market, job_id: str) -> str:
    try:
        return market.job(job_id).state
    except ramp.MarketRefused:
        return "no answer"


def kill(state: Path, name: str) -> None:
    found = status(StateFolder(state))
    agent = found.agent(name) if found is not None else None
    assert agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)


def test_a_slot_that_cannot_be_delivered_is_paid_back_once(market: ramp.Market) -> None:
    """Its site maps the buyer to an account that is not there, so no job can start; its end makes that certain."""
    before = market.balance().balance
    bought = buy(market, price=8, wall="6s", cores=(1,))
    assert market.balance().balance == before - bought.cost
    (job,) = market.launch(bought.request_id, "true")
    assert "no account " in job.detail
    done = ended(market, job.job_id)
    assert (done.state, done.delivery) == ("failed", "undelivered")
    until(lambda: market.balance().balance == before, "the money is back")
    refunds = [each for each in market.statement().postings if each.kind == "refund"]
    assert [each.agreement_id for each in refunds] == [bought.units[0].agreement_id]


AGENT, BUYER, OTHER = "daemon", "games", "irc"  # not nobody, as whom other tests run jobs: these kill all they can
"""Accounts that every Debian has, in the places of `ramp`, `alice1` and somebody whose jobs are not the market's."""

SUDOERS = Path("/etc/sudoers.d")


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """The worker as the page has it installed, and allowed."""
    if os.geteuid() != 0 or shutil.which("sudo") is None or not SUDOERS.is_dir():
        pytest.skip("needs root, and sudo")
    with tempfile.TemporaryDirectory(prefix="ramp-worker-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        program = Path(folder) / "ramp-job-worker"
        shutil.copy(worker.__file__, program)
        program.chmod(0o755)
        jobs = Path(folder) / "jobs"
        jobs.mkdir()
        jobs.chmod(0o1777)
        rule = SUDOERS / f"ramp-test-{os.getpid()}"
        try:
            rule.touch(mode=0o440)
            rule.write_text(f'Defaults!{program} env_reset\n{AGENT} ALL=({BUYER}) NOPASSWD: {program} ""\n')
            checked = subprocess.run(["visudo", "-c", "-q", "-f", rule], capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr
            yield program
        finally:
            rule.unlink(missing_ok=True)


def as_agent(*argv: object, text: str = "") -> subprocess.CompletedProcess[str]:
    words = ["runuser", "-u", AGENT, "--", *map(str, argv)]
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": "", "PYTHONPATH": "/nowhere"}
    return subprocess.run(words, input=text, capture_output=True, text=True, cwd="/", env=environment, timeout=LIMIT_S)


def question(program: Path, verb: str, account: str = BUYER) -> str:
    job: dict[str, Any] = {"job_id": "job-1", "resource": "res"}
    root = str(program.parent / "jobs" / account)
    return json.dumps({"version": 1, "verb": verb, "root": root, "job": job, "name": "x", "offset": 0})


@pytest.fixture(params=["root", "sudo"])
def job(request: pytest.FixtureRequest, installed: Path) -> Iterator[KeptJob]:
    """A job of the buyer's account, under a keeper of root or of the agents' account."""
    entry = pwd.getpwnam(BUYER)
    with tempfile.TemporaryDirectory(prefix="ramp-kept-", dir="/tmp") as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "jobs").mkdir()
        shutil.chown(root / "jobs", entry.pw_uid, entry.pw_gid)
        if request.param == "root":
            python: tuple[str, ...] = (sys.executable,)
            worker_command = (*becoming(entry), *worker_inside(system_python()))
        else:
            shutil.chown(root, pwd.getpwnam(AGENT).pw_uid)
            for source in (ramp.__file__, *map(str, Path(worker.__file__).parent.glob("*.py"))):
                copy = root / "program" / Path(source).relative_to(Path(ramp.__file__).parents[1])
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
            python = ("runuser", "-u", AGENT, "--", "env", f"PYTHONPATH={root}/program", system_python())
            worker_command = ("sudo", "-n", "-u", BUYER, "--", str(installed))
        account = {"worker": worker_command, "uid": entry.pw_uid}
        kept = KeptJob(root, python=python, **account)
        yield kept
        if keeper := kept.keeper:
            os.kill(keeper, signal.SIGTERM)
            kept.ended()


def test_a_job_runs_as_its_buyer_who_cannot_reach_its_record(job: KeptJob) -> None:
    """It may not even read it, and can end neither its keeper nor a worker that is to end it."""
    attack = f"kill -9 $PPID; echo x > {job.record}.json; rm -rf {job.root}/records"
    job.start("sh", "-c", f"id -un; {attack}; kill -9 -1")
    seen = job.ended()
    assert seen["started_at"] is not None
    assert seen["cores"] == 4
    assert (job.folder / "stdout").read_text() == f"{BUYER}\n"
    assert job.folder.stat().st_uid == job.uid
    assert (job.root / "jobs" / "res").stat().st_mode & 0o077 == 0, "nobody else sees what a job leaves"


STOP_ALL = """
import os, signal
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass
"""
"""Stops every other process of its account."""


def test_an_account_cannot_stop_a_job_from_starting_and_get_its_price_back(job: KeptJob) -> None:
    stopping = subprocess.Popen([*becoming(pwd.getpwnam(BUYER)), system_python(), "-c", STOP_ALL])
    try:
        job.start("true", last=50)
        assert job.running()["cores"] == 4
    finally:
        stopping.kill()
        stopping.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_account_cannot_hold_up_whoever_starts_its_worker() -> None:
    """Before: it stopped the process between becoming the account and running the worker, and the agent waited."""
    command = becoming(pwd.getpwnam(BUYER))
    stopping = subprocess.Popen([*command, system_python(), "-c", STOP_ALL])
    try:
        for _ in range(50):
            started = subprocess.Popen([*command, "true"])
            started.kill()
            started.wait()
    finally:
        stopping.kill()
        stopping.wait()


def test_an_account_that_sudo_refuses_is_the_sites_failure(job: KeptJob) -> None:
    if job.worker[0] != "sudo":
        pytest.skip("for the agents' account only")
    forbidden = ("sudo", "-n", "-u", OTHER, "--", job.worker[-1])
    job.start("true", worker=forbidden, late_when=(job.record_file, "sudo: "))
    seen = job.ended()
    assert (seen["state"], seen["started_at"]) == ("failed", None)
    assert seen["detail"].startswith("sudo: ")


def test_root_puts_a_job_into_a_control_group_of_its_own(job: KeptJob) -> None:
    where = job.root / "groups"
    where.mkdir()
    if job.worker[0] == "sudo" or subprocess.run(["mount", "-t", "cgroup2", "none", where], check=False).returncode:
        pytest.skip("needs control groups of version 2, and root")
    try:
        written = (job.folder / "work" / "group", "/")
        job.start("sh", "-c", "cat /proc/self/cgroup > group; exec sleep 900", late_when=written)
        assert job.ended()["detail"] == "its slot ended"
        assert (job.folder / "work" / "group").read_text().strip().endswith(f"/ramp-res:{job.name}")
        assert not list(where.glob(f"**/ramp-res:{job.name}")), "it is removed"
    finally:
        subprocess.run(["umount", where], check=True)


def test_nothing_else_is_allowed(installed: Path) -> None:
    asked = question(installed, "read")
    for argv in (
        ("-u", BUYER, "--", installed, "argument"),
        ("-u", OTHER, "--", installed),
        ("-u", "root", "--", installed),
        ("-u", BUYER, "--", "/bin/sh", "-c", "true"),
        ("-u", BUYER, "--", "/usr/bin/python3", installed),
        ("-u", BUYER, "--preserve-env=PYTHONPATH", "--", installed),
    ):
        done = as_agent("sudo", "-n", *argv, text=asked)
        assert done.returncode != 0, f"sudo {argv} is allowed: {done.stdout}"


def test_a_folder_that_another_account_has_made_there_is_not_used(installed: Path) -> None:
    trap = installed.parent / "jobs" / "trap"
    trap.mkdir()
    done = as_agent("sudo", "-n", "-u", BUYER, "--", installed, text=question(installed, "read", "trap"))
    assert "not a folder of the account's own" in json.loads(done.stdout)["error"]
