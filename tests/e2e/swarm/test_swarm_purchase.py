"""A purchase from the call to the payment, agents in processes of their own, on each kind of XMPP server."""

import pytest

from ramp.servers.prosody import prosody_executable
from tests.e2e.swarm.swarm_books import Books, credits_of
from tests.e2e.swarm.swarm_market import in_hours, unit

pytestmark = pytest.mark.e2e

DEPOSIT = 100_000


@pytest.fixture(scope="module", params=["embedded", "prosody"])
def kind(request):
    """Both kinds of XMPP server in every run; ejabberd's turn is in tests/e2e/ejabberd."""
    if request.param == "prosody" and prosody_executable() is None:
        pytest.skip("Prosody is not installed (apt-get install prosody)")
    return request.param


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(kind=kind, users={"alice": DEPOSIT, "poor": 1_000})
    market.up()
    market.wait_ready()
    return market


@pytest.fixture
def books(market):
    return Books(market)


def test_every_agent_has_a_process_of_its_own(market):
    pids = market.pids()
    # supervisor and server, resources, users, bank and directory and keeper
    assert len(pids) == len(set(pids)) == 2 + 4 + 2 + 3


def test_a_two_unit_request_is_auctioned_committed_signed_and_paid(market, books):
    begin = in_hours(1)
    events = list(market.submit("alice", "request-two", [unit(1, 8, begin), unit(2, 100, begin)]))
    outcome = events[-1]["outcome"]
    assert outcome["status"] == "committed", outcome
    assert [event["record"]["round_number"] for event in events if event["event"] == "round_closed"] == [1, 2]
    for record in outcome["rounds"]:
        # small machines cannot run unit 2: 4 resources answer for 2 units each, by offer or refusal
        assert len(record["offers"]) + len(record["refusals"]) == 8
        assert {each["resource"] for each in record["refusals"] if each["refusal"]["unit"] == 2} >= {
            "small1@localhost",
            "small2@localhost",
        }
    bought = {each["unit"]: each for each in outcome["units"]}
    assert bought[1]["offer"]["resource"] == "small1@localhost"
    assert bought[2]["offer"]["resource"] == "big1@localhost"
    cost = {
        number: credits_of(each["offer"]["cpu_hour_cost"] * cores)
        for (number, each), cores in zip(sorted(bought.items()), (8, 100), strict=True)
    }
    books.come_right()
    balances = books.balances()
    assert balances["alice"] == credits_of(DEPOSIT) - cost[1] - cost[2]
    assert (balances["small1"], balances["big1"]) == (cost[1], cost[2])
    assert market.account("alice")["balance"] == balances["alice"]
    assert {each["transfer_id"] for each in outcome["units"]} == {
        f"payment:{each['agreement_id']}" for each in outcome["units"]
    }
