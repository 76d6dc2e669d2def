"""A plug-in and a price strategy from outside the project that misbehave, beside resources that do not.

Whatever they do, buyers buy from the others at once, no other agent of their process notices, `ramp ps` says what is
wrong, nothing is paid that is not booked, and a mended guest is back by itself. All other ways to misbehave are in
tests/integration/guests.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ramp.cli.main import main
from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import Machine, Market, in_hours, own_id, unit, until
from tests.integration.guests.guest_package import MoodyPackage

pytestmark = pytest.mark.e2e

MACHINES = (
    Machine("moody1", 64, 20, plugin="moody"),
    Machine("haggler", 64, 25, pricing="moody"),
    Machine("good1", 256, 40),
    Machine("good2", 256, 45),
)
"""The guests' machines are the cheapest, so who can buy there does."""

GUESTS = {"quote_s": 200, "price_s": 200, "change_s": 200, "open_s": 600, "environment": ["MOODY_MOODS"]}
HOURS = itertools.count(2)


@pytest.fixture(scope="module")
def shared(module_market: Any, package: MoodyPackage) -> Market:
    """All resources in one process."""
    market = module_market(users={"alice": 1_000_000}, machines=MACHINES, per_process=4, guests=GUESTS)
    market.up()
    return market


@pytest.fixture
def market(shared: Market, moody: MoodyPackage) -> Iterator[Market]:
    """A market with everybody well; nobody is restarted."""
    shared.wait_ready()
    yield shared
    status = shared.status()
    assert status is not None, shared.logs()
    assert {agent["name"]: agent["restarts"] for agent in status["agents"] if agent["restarts"]} == {}


def standing(market: Market) -> str:
    agent = market.agent("moody1")
    return f"{agent['state']}: {agent['detail']}"


def buy(market: Market) -> tuple[str, set[str]]:
    """Buy eight cores: who sold them (or why nobody did), and the codes with which moody1 refused."""
    outcome = market.buy("alice", own_id("guests"), [unit(1, 8, in_hours(next(HOURS)))])
    refusals = [each for record in outcome["rounds"] for each in record["refusals"]]
    codes = {each["refusal"]["code"] for each in refusals if each["resource"] == "moody1@localhost"}
    if outcome["status"] != "committed":
        return outcome["reason"], codes
    return outcome["units"][0]["offer"]["resource"].partition("@")[0], codes


def is_back(market: Market) -> None:
    """The mended guest sells again, and all says so."""
    until(lambda: buy(market)[0] == "moody1", lambda: standing(market))
    until(lambda: market.agent("moody1")["state"] == "ready", lambda: standing(market))
    Books(market).come_right()


def test_a_quote(market: Market, moody: MoodyPackage, capsys: pytest.CaptureFixture[str]) -> None:
    moody.be(quote="exit")
    told = "degraded: plug-in: quote: its process ended with status 3"
    for _ in range(2):
        assert buy(market) == ("haggler", {"machine_unavailable"})  # refused in time, never silent
        until(lambda: standing(market).startswith(told), lambda: standing(market))
    capsys.readouterr()
    assert main(["ps", "--state-dir", str(market.state.path)]) == 0
    assert "degraded: plug-in: quote: " in " ".join(capsys.readouterr().out.split())
    moody.be()
    is_back(market)


def test_a_hold(market: Market, moody: MoodyPackage) -> None:
    moody.be(hold="after die")
    seller, _ = buy(market)
    assert seller in ("haggler", "moody1"), seller  # moody1: it was booked all the same, and found so in time
    if seller != "moody1":  # a sale that is confirmed shows it to be well
        until(lambda: "plug-in: hold: " in standing(market), lambda: standing(market))
    Books(market).come_right()
    moody.be()
    is_back(market)
