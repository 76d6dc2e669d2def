"""The supervisor makes the market's accounts, and makes them again when the server has lost them."""

import os
import shutil
import signal

import psutil
import pytest

from ramp.servers.prosody import store_accounts
from tests.e2e.attacks.rogue import connect, door
from tests.e2e.swarm.swarm_market import in_hours, unit, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]


def lose_everything(market):
    """Delete what the server keeps, but for its certificate."""
    for path in market.state.server.glob("*.sqlite*"):
        path.unlink()
    shutil.rmtree(market.state.server / "data", ignore_errors=True)


@pytest.fixture
def market(new_market, kind):
    market = new_market(kind=kind, users={"alice": 1_000_000}, accounts=["visitor"], per_process=4)
    market.up()
    market.wait_ready()
    return market


def buys(market, request_id):
    return market.buy("alice", request_id, [unit(1, 8, in_hours(1))])["status"] == "committed"


def test_accounts_that_the_server_lost_are_made_again(market, kind):
    # while it is down: deleted, or replaced by one with other passwords
    market.down()
    lose_everything(market)
    market.up()
    assert buys(market, "after-a-deletion")
    if kind == "prosody":
        market.down()
        accounts = dict.fromkeys(market.state.passwords([]), "other")
        store_accounts(market.state.server / "prosody.cfg.lua", "localhost", accounts)
        market.up()
        assert buys(market, "after-a-replacement")
    # while it is up: the server dies, and all that it had stored with it
    server = market.status()["server"]["pid"]
    lose_everything(market)
    os.kill(server, signal.SIGKILL)
    until(lambda: market.status()["server"]["pid"] not in (server, None), "the server is started again")
    market.wait_ready()
    assert buys(market, "after-a-crash")


async def test_a_visitor_has_an_account_and_no_password_is_told(market):
    visitor = await connect(door(market), "visitor")
    await visitor.close()
    passwords = market.state.passwords([]).values()
    assert len(passwords) == 9  # bank, directory, keeper, alice, four machines, visitor
    told = [path.read_text(errors="replace") for path in market.state.logs.rglob("*") if path.is_file()]
    told += [path.read_text(errors="replace") for path in market.state.server.glob("*.log")]
    for pid in set(market.pids()):
        told.append(" ".join([*psutil.Process(pid).cmdline(), *psutil.Process(pid).environ().values()]))
    for password in passwords:
        assert not any(password in text for text in told)
    assert (market.state.path / "passwords.json").stat().st_mode & 0o077 == 0
