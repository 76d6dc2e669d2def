"""A plug-in and a price strategy from outside the project that misbehave, beside resources that do not.

Attack sheet, "A plug-in or a pricing strategy that misbehaves" and A3: whatever they do, buyers buy from the others at
once, no other agent of their process notices, `ramp ps` says what is wrong, nothing is paid that is not booked, and a
mended guest is back by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import psutil
import pytest
from guest_package import MoodyPackage
from swarm_books import Books
from swarm_market import Machine, Market, in_hours, unit, until

from ramp.cli.main import main

pytestmark = pytest.mark.e2e

MACHINES = (
    Machine("moody1", 64, 20, plugin="moody"),
    Machine("haggler", 64, 25, pricing="moody"),
    Machine("good1", 256, 40),
    Machine("good2", 256, 45),
)
"""The guests' machines are the cheapest, so who can buy there does."""

GUESTS = {"quote_s": 10, "price_s": 10, "change_s": 10, "open_s": 600, "environment": ["MOODY_MOODS"]}
HOURS, NUMBERS = itertools.count(2), itertools.count()


@pytest.fixture(scope="module")
def shared(module_market: Any, package: MoodyPackage) -> Market:
    """All resources in one process."""
    market = module_market(users={"alice": 1_000_000}, machines=MACHINES, per_process=4, guests=GUESTS)
    market.up()
    return market


def unharmed(market: Market) -> Iterator[Market]:
    """A market with everybody well; nobody is restarted."""
    market.wait_ready()
    yield market
    status = market.status()
    assert status is not None, market.logs()
    assert {agent["name"]: agent["restarts"] for agent in status["agents"] if agent["restarts"]} == {}


@pytest.fixture
def market(shared: Market, moody: MoodyPackage) -> Iterator[Market]:
    yield from unharmed(shared)


def request_id() -> str:
    return f"request-{next(NUMBERS)}"


def standing(market: Market, name: str) -> str:
    agent = market.agent(name)
    return f"{agent['state']}: {agent['detail']}"


def complaints(market: Market) -> int:
    """Lines of the log about the plug-in's failures."""
    return sum(path.read_text().count("its plug-in failed") for path in market.state.logs.glob("*.log"))


def buy(market: Market) -> tuple[str, list[dict[str, Any]]]:
    """Buy eight cores: who sold them (or why nobody did), and the rounds."""
    events = list(market.submit("alice", request_id(), [unit(1, 8, in_hours(next(HOURS)))]))
    outcome = events[-1]["outcome"]
    rounds = outcome["rounds"]
    if outcome["status"] != "committed":
        return outcome["reason"], rounds
    return outcome["units"][0]["offer"]["resource"].partition("@")[0], rounds


def refusals(rounds: list[dict[str, Any]], name: str) -> list[tuple[str, str]]:
    """What a resource refused with, round by round: code and detail."""
    given = [refusal for each in rounds for refusal in each["refusals"] if refusal["resource"] == f"{name}@localhost"]
    return [(refusal["refusal"]["code"], refusal["refusal"]["detail"]) for refusal in given]


def is_back(market: Market, seller: str) -> None:
    """The mended guest sells again, and all says so."""
    until(lambda: buy(market)[0] == seller, lambda: standing(market, seller))
    until(lambda: market.agent(seller)["state"] == "ready", lambda: standing(market, seller))
    Books(market).come_right()


def some_in_every_run(ways: Iterable[str], *chosen: str) -> list[Any]:
    """Ways to misbehave as parameters of a test: those that `make e2e` tries, and the others for the full tier."""
    return [pytest.param(how, marks=[] if how in chosen else pytest.mark.full) for how in ways]


QUOTES = {
    "raise": "quote: ValueError: the parser of sinfo broke",
    "lasting": "quote: that partition is gone",
    "hang": "quote: no answer within 10 s",
    "fork": "quote: no answer within 10 s",
    "exit": "quote: its process ended with status 3",
    "scribble": "quote: a message must have 1 to 1000000 bytes, got 4294967295",
    "none": "quote: wrong type of answer: got NoneType, expected Slot or Refusal",
    "backwards": "which is not after its start",
}


@pytest.mark.parametrize("how", some_in_every_run(QUOTES, "exit"))
def test_a_quote(market: Market, moody: MoodyPackage, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = complaints(market)
    moody.be(quote=how)
    first, rounds = buy(market)
    assert first == "haggler"
    assert {code for code, _ in refusals(rounds, "moody1")} == {"machine_unavailable"}  # refused in time, never silent
    until(lambda: QUOTES[how] in standing(market, "moody1"), lambda: standing(market, "moody1"))
    assert standing(market, "moody1").startswith("degraded: plug-in: quote: ")
    capsys.readouterr()
    assert main(["ps", "--state-dir", str(market.state.path)]) == 0
    assert "degraded: plug-in: quote: " in " ".join(capsys.readouterr().out.split())
    again, rounds = buy(market)
    assert again == "haggler"
    assert {code for code, _ in refusals(rounds, "moody1")} == {"machine_unavailable"}
    assert complaints(market) <= lines + 1
    moody.be()
    is_back(market, "moody1")


HOLDS = ("raise", "hang", "after hang", "after die", "after raise", "none", "transient", "lasting")


@pytest.mark.parametrize("how", some_in_every_run(HOLDS, "after die"))
def test_a_hold(market: Market, moody: MoodyPackage, how: str) -> None:
    moody.be(hold=how)
    seller, _ = buy(market)
    assert seller in ("haggler", "moody1"), seller  # moody1: it was booked all the same, and found so in time
    if seller != "moody1":  # a sale that is confirmed shows it to be well
        until(lambda: "plug-in: hold: " in standing(market, "moody1"), lambda: standing(market, "moody1"))
    Books(market).come_right()
    moody.be()
    is_back(market, "moody1")


@pytest.mark.full
def test_guests_end_with_their_agents(new_market: Any, moody: MoodyPackage) -> None:
    """Whatever ends the agents' process, or the supervisor: no process of a guest is left."""
    market = new_market(users={"alice": 1_000_000}, machines=MACHINES, per_process=4, guests=GUESTS)
    market.up()
    market.wait_ready()
    moody.be(quote="fork")
    with market.submitted("alice", request_id(), [unit(1, 8, in_hours(1))]):
        process = psutil.Process(market.agent("moody1")["pid"])
        until(lambda: any(words[0] == "children" for words in moody.notes()), "the guest has children")
        family = process.children(recursive=True)
        assert len(family) >= 4
        process.kill()
        until(lambda: not any(each.is_running() for each in family), lambda: str(family))
    moody.be()
    until(lambda: market.agent("moody1")["pid"] not in (0, process.pid), "it is started again")
    is_back(market, "moody1")
    status = market.status()
    assert status is not None
    supervisor = psutil.Process(status["pid"])
    family = supervisor.children(recursive=True)
    supervisor.kill()
    until(lambda: not any(each.is_running() for each in family), lambda: str(family))
