"""The market's keeper at work, and others who would like to be it."""

from __future__ import annotations

import asyncio

import pytest
from certified import Party, fresh, sealed_by_hand, unsealed
from standing import restarts, standing
from swarm_market import in_hours, unit, until

from ramp.ledger.evidence import EvidenceKind
from ramp.model.acl import Performative
from ramp.model.contents import DepositMade, DepositOrder, MarketOverview, OverviewQuery
from ramp.model.seal import Role
from ramp.rfql.signing.notary import PublicNotary
from ramp.rfql.signing.trust import Trust
from ramp.runtime.clock import SystemClock
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
DEPOSIT = 100_000
"""Alice's opening deposit, in credits."""

GRANT = 5_000_000
"""The keeper's deposit for bob, in minor units."""


@pytest.fixture(scope="module")
def market(module_market, kind):
    accounts = ["mallory", "rival", "stranger"]
    market = module_market(kind=kind, users={"alice": DEPOSIT, "bob": 0}, accounts=accounts, per_process=4)
    market.up()
    market.wait_ready()
    return market


def log_lines(market, text):
    logs = [path.read_text() for path in market.state.logs.glob("*.log")]
    return [line for log in logs for line in log.splitlines() if text in line]


def deposit(market, deposit_id, account, amount):
    order = {"verb": "deposit", "deposit_id": deposit_id, "account": account, "amount": amount, "memo": "a grant"}
    return market.ask("keeper", order)


def test_the_keeper_deposits_once_however_often_it_asks_and_sees_all_trading(market):
    bought = market.buy("alice", "request-before", [unit(1, 8, in_hours(1))])
    assert bought["status"] == "committed", bought
    for _ in range(2):
        answered = deposit(market, "grant-1", "bob", GRANT)
        assert answered["event"] == "deposit", answered
        assert (answered["deposit_id"], answered["amount"]) == ("grant-1", GRANT)
    assert market.account("bob")["balance"] == GRANT
    bobs = market.buy("bob", "request-bob", [unit(1, 8, in_hours(1))])
    assert bobs["status"] == "committed", "bob can buy with it"

    overview = market.ask("keeper", {"verb": "overview"})
    with LedgerStore.open(market.state.ledger) as ledger:
        assert ledger.audit() == []
        balances = {each.account.account_id: each.posted for each in ledger.balances()}
        (kept,) = ledger.evidence("grant-1")
    assert {each["account"]: each["balance"] for each in overview["accounts"]} == balances
    assert sum(balances.values()) == 0
    cost = 8 * 20 * 100
    assert [(each["kind"], each["credit_account"], each["amount"]) for each in overview["trades"]] == [
        ("deposit", "alice@localhost", DEPOSIT * 100),
        ("payment", "small1@localhost", cost),
        ("deposit", "bob@localhost", GRANT),
        ("payment", "small1@localhost", cost),
    ]
    orders = [each["order_id"] for each in overview["trades"] if each["kind"] == "payment"]
    assert all(orders)
    assert len(set(orders)) == 2
    # what the bank has acted on is kept, and holds for everybody who has the authority's certificate
    assert kept.kind is EvidenceKind.DEPOSIT
    anybody = PublicNotary(Trust(KeyStore(market.state.keys).ca_certificates()))
    order = anybody.open(kept.text, SystemClock().now())
    assert (order.sender, order.seal.role, order.receiver) == ("keeper@localhost", Role.KEEPER, "bank@localhost")
    assert order.content == DepositOrder("grant-1", "bob@localhost", GRANT, "a grant")
    lines = log_lines(market, "on the order of keeper@localhost: deposit grant-1")
    assert lines
    assert all(f"{GRANT} minor units to bob@localhost" in line for line in lines)


def test_the_keeper_is_told_why_its_order_is_refused(market):
    before = standing(market)
    for account, amount, why in (("nobody", 5, "nobody@localhost"), ("bob", 0, "above 0"), ("bob", -5, "above 0")):
        answered = deposit(market, "grant-refused", account, amount)
        assert answered["event"] == "refused", answered
        assert why in answered["reason"]
    again = deposit(market, "grant-1", "alice", 1)
    assert again["event"] == "refused", "the same deposit id on other terms"
    assert not before.changes(standing(market))


def test_a_deposit_survives_the_death_of_the_bank(market):
    balance = market.account("bob")["balance"]
    count = market.agent("bank")["restarts"]
    market.kill("bank")
    answered = deposit(market, "grant-2", "bob", 700)
    assert answered["event"] == "deposit", answered
    until(lambda: market.agent("bank")["restarts"] > count, "the bank was started again")
    assert deposit(market, "grant-2", "bob", 700)["event"] == "deposit"
    assert market.account("bob")["balance"] == balance + 700


async def test_nobody_else_is_obeyed(market, rogues):
    """An order sealed by a user, a resource, nobody; with the keeper's own seal, captured; and in the keeper's name."""
    await asyncio.to_thread(market.wait_ready)
    started = restarts(market)
    gang = [
        await Party.enter(market, rogues, "mallory", Role.USER),
        await Party.enter(market, rogues, "rival", Role.RESOURCE),
        await Party.enter(market, rogues, "stranger"),
    ]
    before = await asyncio.to_thread(standing, market)
    for member in gang:
        for performative, content in (
            (P.REQUEST, DepositOrder(fresh("deposit"), "bob@localhost", 10**9)),
            (P.QUERY_REF, OverviewQuery(fresh("query"))),
        ):
            own = member.message(performative, "bank", content)
            keepers = member.message(performative, "bank", content, sender="keeper")
            await member.put(unsealed(own), "bank")
            await member.put(sealed_by_hand(keepers, member.keys, "keeper@localhost"), "bank")
            if member.role is not None:
                await member.put(sealed_by_hand(own, member.keys, member.name), "bank")
                await member.put(sealed_by_hand(keepers, member.keys, member.name), "bank")
        await member.is_read_by("bank")
        assert not [each for each in member.heard if isinstance(each.content, DepositMade | MarketOverview)]
        assert log_lines(market, f"message from {member.name} dropped")
        member.leave()
    assert not before.changes(await asyncio.to_thread(standing, market))
    assert restarts(market) == started
