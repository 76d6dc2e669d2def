"""What becomes of a running market when its state folder is full, read-only, or damaged."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ramp.cli.main import main
from ramp.errors import TransportError
from tests.e2e.swarm.swarm_market import Machine, Market, in_hours, unit, until

pytestmark = pytest.mark.e2e

MACHINES = (Machine("big1", 256, 35), Machine("big2", 256, 40))
MARKET: dict[str, Any] = {"users": {"alice": 100_000, "bob": 100_000}, "machines": MACHINES, "per_process": 2}
Ramp = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ramp(capsys: pytest.CaptureFixture[str]) -> Ramp:
    """Runs a verb for a market: exit code, standard output, standard error."""

    def run(market: Market, *arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*arguments, "--state-dir", str(market.state.path)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def buy(market: Market, user: str, request_id: str) -> str:
    return market.buy(user, request_id, [unit(1, 200, in_hours(2)), unit(2, 200, in_hours(2))])["status"]


def state(market: Market, name: str) -> str:
    agent = market.agent(name)
    return f"{agent['state']}: {agent['detail']}"


def active(market: Market, user: str) -> list[str]:
    return sorted(each["agreement"]["agreement_id"] for each in market.agreements(user) if each["state"] == "active")


def fill(folder: Path) -> Path:
    """Leave no room at all."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return filler


def test_a_full_disk(new_market: Callable[..., Market], small_disk: Path, ramp: Ramp) -> None:
    """Nobody promises anything, everybody is told why, nothing is lost, and it goes on by itself with room again."""
    market = new_market(folder=small_disk, **MARKET)
    supervisor = market.up()["pid"]
    market.wait_ready()
    assert buy(market, "alice", "before") == "committed"
    bought = active(market, "alice")
    account = market.account("alice")
    filler = fill(small_disk)

    events = []
    with contextlib.suppress(TransportError):  # the agent may end before the line is out
        events += list(market.submit("alice", "amid", [unit(1, 200, in_hours(4))]))
    assert [event for event in events if event["event"] == "request_ended"] == []
    for event in events:
        if event["event"] == "refused":
            assert "disk full" in event["reason"]
    until(lambda: state(market, "alice").startswith("degraded: disk full"), lambda: state(market, "alice"))
    code, table, said = ramp(market, "ps")
    assert code == 0
    assert "degraded: disk full" in table.replace("\n", " ")
    code, _, said = ramp(market, "balance", "--user", "alice")
    assert code == 1
    assert "alice is degraded: disk full" in said

    filler.unlink()
    market.wait_ready()
    status = market.status()
    assert status["pid"] == supervisor
    assert active(market, "alice") == bought
    assert market.account("alice")["balance"] == account["balance"]
    assert buy(market, "alice", "after") in ("committed", "no_offers")


def damage(path: Path, statement: str, *values: object) -> int:
    """Change a database by hand; the last row's number."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        changed = connection.execute(statement, values).rowcount
        assert changed > 0, statement
        return changed


@pytest.mark.full
def test_one_unreadable_record_keeps_one_party_down(
    new_market: Callable[..., Market], tmp_path: Path, ramp: Ramp
) -> None:
    market = new_market(**MARKET)
    market.up()
    market.wait_ready()
    assert buy(market, "alice", "before") == "committed"
    market.down()
    journal = market.state.journals / "alice.sqlite"
    damage(journal, "UPDATE journal SET record = replace(record, '\"at\"', '\"when\"') WHERE sequence = 2")
    code, _, said = ramp(market, "up", str(market.config), "--detach")
    assert code == 0
    assert f"alice (user) is not up: broken: {journal}: row 2 of the journal: " in said
    assert "from a backup" in said
    assert state(market, "alice").startswith(f"broken: {journal}: row 2")
    assert {market.agent(name)["state"] for name in ("bank", "directory", "keeper", "bob", "big1", "big2")} == {"ready"}
    assert market.buy("bob", "bobs", [unit(1, 200, in_hours(6))])["status"] == "committed"
    assert "cpu_hour_cost" not in market.logs() + said
    assert not market.state.socket("alice").exists()
    market.down()
    damage(journal, "UPDATE journal SET record = replace(record, '\"when\"', '\"at\"') WHERE sequence = 2")
    market.up()
    market.wait_ready()
    assert len(active(market, "alice")) == 2
