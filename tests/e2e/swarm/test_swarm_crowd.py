"""Many at once, real logs, and the ledger in PostgreSQL."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from swarm_books import Books
from swarm_market import Machine, in_hours, unit

from ramp.model.instant import SECOND, from_iso

pytestmark = [pytest.mark.e2e]


@pytest.mark.full
def test_five_users_and_twenty_resources_start_together(new_market):
    small = [Machine(f"small{number:02}", 64, 20 + number) for number in range(18)]
    big = [Machine("big1", 256, 50), Machine("big2", 256, 52)]
    users = [f"user{number}" for number in range(1, 6)]
    market = new_market(users=dict.fromkeys(users, 100_000), machines=[*small, *big])
    market.up()
    market.wait_ready()
    assert len(market.listed()) == 20
    books = Books(market)
    begin = in_hours(1)

    def buy(user):
        outcome = market.buy(user, f"request-{user}", [unit(1, 8, begin), unit(2, 200, begin)])
        return outcome["status"], outcome["reason"]

    with ThreadPoolExecutor(len(users)) as pool:
        statuses = list(pool.map(buy, users))
    books.come_right()
    committed = [status for status, _ in statuses if status == "committed"]
    # each big machine has room for one unit 2
    assert 1 <= len(committed) <= 2, statuses
    assert {status for status, _ in statuses} <= {"committed", "withdrawn", "no_offers"}, statuses
    assert len(books.paid()) == 2 * len(committed)
    with ThreadPoolExecutor(len(users)) as pool:  # now there is room for all
        roomy = pool.map(lambda user: market.buy(user, f"roomy-{user}", [unit(1, 4, begin), unit(2, 8, begin)]), users)
        assert [outcome["status"] for outcome in roomy] == ["committed"] * 5
    books.come_right()


@pytest.mark.postgresql
def test_the_bank_keeps_its_ledger_in_postgresql(new_market, postgresql_url):
    market = new_market(users={"alice": 100_000, "poor": 1_000}, ledger=postgresql_url)
    market.up()
    market.wait_ready()
    books = Books(market)
    begin = in_hours(1)
    bought = market.buy("alice", "request-postgresql", [unit(1, 8, begin), unit(2, 100, begin)])
    assert bought["status"] == "committed", bought
    books.come_right()
    market.kill("bank")
    failed = market.buy("poor", "request-poor", [unit(1, 8, begin), unit(2, 100, begin)])
    assert failed["status"] == "failed", failed
    books.come_right()
    assert not market.state.ledger.exists()
    balances = books.balances()
    assert market.account("alice")["balance"] == balances["alice"]
    market.down()
    market.up()
    assert market.account("alice")["balance"] == balances["alice"]


LOG = "LLNL-Thunder-2007-1.1-cln"
SPEED = 60


@pytest.mark.full
@pytest.mark.logs
def test_replays_of_a_real_log_go_on_and_count_what_was_sold(new_market):
    folder = os.environ.get("RAMP_LOGS")
    if not folder or not list(Path(folder).glob(f"{LOG}.swf*")):
        pytest.skip(f"RAMP_LOGS has no {LOG}")
    replay = f'log = "{LOG}", base_time_s = 1300000, speed = {SPEED}'
    market = new_market(users={"alice": 10_000_000}, machines=[Machine("thunder", 4008, 40, replay)])
    market.up()
    first = _machine(market)
    assert first["source"] == "log"
    assert first["running"]
    begin = in_hours(24)
    bought = market.buy("alice", "request-replay", [unit(1, 2000, begin)])
    assert bought["status"] == "committed", bought
    assert bought["units"][0]["offer"]["source"] == "log"
    market.down()
    market.up()
    second = _machine(market)
    passed = (from_iso(second["time"]) - from_iso(first["time"])) / SECOND
    assert passed > 0
    assert second["machine_time_s"] - first["machine_time_s"] == pytest.approx(SPEED * passed, abs=0.001)
    assert [each["cores"] for each in second["reservations"]] == [2000]
    refused = market.buy("alice", "request-too-much", [unit(1, 2100, begin)])
    assert refused["status"] == "no_offers", "2000 of the 4008 cores are sold"
    assert refused["rounds"][0]["refusals"][0]["refusal"]["code"] == "cores_taken"
    Books(market).come_right()


def _machine(market):
    answered = market.ask("alice", {"verb": "machine", "resource": "thunder"})
    assert answered["event"] == "machine", answered
    return json.loads(answered["snapshot"])
