"""Resources that join, leave and hang while the market runs, and a directory that starts again."""

from __future__ import annotations

import signal

import pytest
from swarm_books import Books
from swarm_market import PATIENT_TIMING, in_hours, unit, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]

LEASED = {**PATIENT_TIMING, "lease_s": 20}
"""Who hangs is struck out of the directory after so many seconds."""

EVERYBODY = ["big1", "big2", "small1", "small2"]


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(armed=True, kind=kind, users={"alice": 1_000_000}, timing=LEASED)
    market.up()
    return market


@pytest.fixture
def ready(market):
    market.wait_ready()
    return market


def called(market, request_id, hours):
    """Who is called for a purchase of a small unit, and who wins."""
    events = list(market.submit("alice", request_id, [unit(1, 8, in_hours(hours))]))
    outcome = events[-1]["outcome"]
    assert outcome["status"] == "committed", outcome
    answers = outcome["rounds"][0]
    names = {each["resource"] for each in answers["offers"] + answers["refusals"]}
    opened = next(event for event in events if event["event"] == "round_opened")
    assert opened["resources"] == len(names)
    winner = outcome["units"][0]["offer"]["resource"].partition("@")[0]
    return sorted(name.partition("@")[0] for name in names), winner


def test_a_resource_that_hangs_is_struck_out_and_comes_back(ready):
    market = ready
    market.kill("small1", signal.SIGSTOP)
    try:
        until(lambda: "small1" not in market.listed(), "its registration runs out")
        assert called(market, "request-without", 3) == (["big1", "big2", "small2"], "small2")
    finally:
        market.kill("small1", signal.SIGCONT)
    until(lambda: "small1" in market.listed(), "it registers again")
    assert called(market, "request-with", 3) == (EVERYBODY, "small1")


def test_a_directory_that_starts_again_knows_the_whole_market_at_once(ready):
    market = ready
    until(lambda: market.written_down("directory") == EVERYBODY, "the directory has written down who is registered")
    for number in range(3):
        market.kill("directory")
        assert called(market, f"request-directory-{number}", 5) == (EVERYBODY, "small1")
    Books(market).come_right()
