"""Jobs on bought slots of simulated machines, on this very computer: launched once, together, and given back."""

import json
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ramp
from ramp.cli.main import main
from ramp.client.swarm import status
from ramp.runtime.state_folder import StateFolder
from tests.e2e.waiting import until
from tests.tiny_market import launched

pytestmark = pytest.mark.e2e

MARKET = """
[market]
resources_per_process = 1

[launching]
executor = "local"
grace_s = 3600

[accounts]
alice = "@own"

[[users]]
name = "alice"
deposit = 1000000

[[users]]
name = "bob"
deposit = 1000000

[machines.small]
cores = 1000
plugin = "steady"
options = { load = 0.0 }

[[resources]]
name = "one"
machine = "small"
start_price = 30
minimum_price = 10

[[resources]]
name = "two"
machine = "small"
start_price = 31
minimum_price = 10

[[resources]]
name = "elsewhere"
machine = "small"
start_price = 99
minimum_price = 90
executor = "none"

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
    assert agent is not None
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
