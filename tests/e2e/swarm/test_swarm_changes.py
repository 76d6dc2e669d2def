"""A market changes while it runs: who takes part, what they ask, their keys, its file; and a restart keeps it."""

import json
import os
import signal

import pytest

import ramp
from ramp.cli.main import main
from ramp.model.instant import HOUR
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration_changes.audit_log import lines_of, own_name
from ramp.runtime.keys.store import KeyStore
from tests.e2e.swarm.swarm_market import Machine, unit, until
from tests.waiting import LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(5 * LIMIT_S)]

MACHINES = (Machine("small1", 64, 20), Machine("small2", 64, 25), Machine("big1", 256, 35))


@pytest.fixture(scope="module")
def market(module_market):
    """One market for all tests here; each changes parties of its own."""
    found = module_market(users={"alice": 10_000_000, "bob": 1_000}, machines=MACHINES, per_process=10)
    found.up()
    found.wait_ready()
    return found


@pytest.fixture
def operator(market):
    return ramp.operate(market.state.path)


def in_some_hours(cores=16, price=70):
    return [unit(1, cores, SystemClock().now() + 8 * HOUR, price=price)]


def bought_from(outcome):
    assert outcome["status"] == "committed", outcome
    return [each["offer"]["resource"].partition("@")[0] for each in outcome["units"]]


def refusals(market, request_id):
    """The codes with which each resource has refused a request that was only quoted."""
    outcome = market.buy("alice", request_id, in_some_hours(), quote_only=True)
    return {each["resource"].partition("@")[0]: each["refusal"]["code"] for each in outcome["rounds"][0]["refusals"]}


def test_a_user_comes_buys_and_leaves_only_when_nothing_is_open(market, operator):
    operator.add_user("carol", deposit="5000")
    with pytest.raises(ramp.MarketRefused) as twice:
        operator.add_user("carol")
    assert twice.value.code == "name_taken"
    assert bought_from(market.buy("carol", "of-carol", in_some_hours(price=24))) == ["small1"]
    with pytest.raises(ramp.MarketRefused, match="1 slot bought that is not over") as refused:
        operator.remove_user("carol")
    assert refused.value.code == "still_open"
    (line,) = operator.remove_user("carol", force=True).lines
    assert "1 certificate revoked" in line.text
    assert "its account keeps" in line.text
    assert "carol" not in market.users()
    keys = KeyStore(market.state.keys)
    assert keys.is_revoked(keys.certificate_on_file("carol@localhost"))


def test_a_resource_drains_over_a_restart_and_sells_again(market, operator):
    operator.drain_resource("small2")
    assert refusals(market, "while-draining")["small2"] == "draining"
    assert [each["draining"] for each in market.status()["agents"] if each["name"] == "small2"] == [True]
    operator.restart("small2")
    assert refusals(market, "after-its-restart")["small2"] == "draining"
    with ramp.connect(market.state.path) as seen:
        assert [each.name for each in seen.resources() if each.draining] == ["small2"]
    operator.resume_resource("small2")
    assert "small2" not in refusals(market, "again")
    with ramp.connect(market.state.path) as seen:
        until(lambda: not any(each.draining for each in seen.resources()), "the directory knows that it sells again")


def test_a_resource_comes_sells_and_is_kept_until_its_slots_are_over(market, operator):
    operator.add_resource(
        '[[resources]]\nname = "cheap"\nmachine = "new"\nplugin = "steady"\nstart_price = 10009\nminimum_price = 9\n'
        "options = { load = 0.0 }\n[machines.new]\ncores = 64\n"
    )
    until(lambda: "cheap" in market.listed(), "the directory lists it")
    assert bought_from(market.buy("alice", "of-cheap", in_some_hours())) == ["cheap"]
    with pytest.raises(ramp.MarketRefused, match="1 slot sold or held that is not over"):
        operator.remove_resource("cheap")
    with pytest.raises(ramp.RampError, match="unknown plugin 'none'"):
        operator.add_resource(
            '[[resources]]\nname = "x"\nmachine = "new"\nplugin = "none"\nstart_price = 9\nminimum_price = 9\n'
        )
    operator.remove_resource("cheap", force=True)
    until(lambda: "cheap" not in market.listed(), "nobody is told of it any more")


def test_a_new_key_is_signed_with_at_once(market, operator):
    """Everybody is pinned to the new certificate, so that a word under the old key would not be believed."""
    before = market.agent("small1")["pid"]
    operator.renew_keys("small1", new_key=True)
    operator.renew_keys("bank")
    assert bought_from(market.buy("alice", "of-a-new-key", in_some_hours(price=24))) == ["small1"]
    assert market.agent("small1")["pid"] == before


def test_the_file_is_taken_as_it_is_said_first(market, operator, capsys):
    text = market.config.read_text()
    edited = text.replace('name = "bob"\n', 'name = "robert"\n').replace("minimum_price = 35", "minimum_price = 36")
    market.config.write_text(edited.replace("heartbeat_s = 1", "heartbeat_s = 2"))
    command = ["reload", "--state-dir", str(market.state.path)]
    assert main([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == [
        "user bob is removed",
        "user robert is added",
        "resource big1: minimum_price 35 -> 36",
        "[timing] heartbeat_s: at the next `ramp up`",
    ]
    assert "bob" in market.users()
    assert main(command) == 0
    assert (market.users(), capsys.readouterr().out.splitlines()[:4]) == (["alice", "robert"], said[:4])
    assert market.account("robert")["balance"] == 1_000_00
    assert main([*command, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "[timing] heartbeat_s: at the next `ramp up`"


def test_a_server_that_is_silent_is_told_in_the_headline(market, capsys):
    def told():
        assert main(["ps", "--json", "--state-dir", str(market.state.path)]) == 0
        return json.loads(capsys.readouterr().out)["headline"]["state"]

    until(lambda: told() == "up", "all is well at first")
    server = market.status()["server"]["pid"]
    os.kill(server, signal.SIGSTOP)
    try:
        until(lambda: told() == "no server", "the server is missed")
    finally:
        os.kill(server, signal.SIGCONT)
    until(lambda: told() == "up", "the server is there again")


def test_what_a_person_wants_to_know_is_told_a_line_each(market, operator, capsys):
    market.buy("alice", "to-be-told", in_some_hours(price=24))
    operator.restart("small2")
    command = ["events", "--last", "1000", "--json", "--state-dir", str(market.state.path)]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"sale", "refusal", "request", "change", "ready"} <= {each["event"] for each in found}
    (sold,) = [each for each in found if each["event"] == "sale" and each["fields"]["request_id"] == "to-be-told"]
    assert (sold["agent"], sold["fields"]["buyer"]) == ("small1", "alice@localhost")
    assert {each["fields"]["code"] for each in found if each["event"] == "refusal"} >= {"price_below_minimum"}
    assert [each["time"] for each in found] == sorted(each["time"] for each in found)


def test_what_was_changed_outlives_the_market_and_is_written_down(market, operator):
    operator.add_user("late", deposit=5)
    operator.drain_resource("big1")
    market.down()
    market.up()
    market.wait_ready()
    assert "late" in market.users()
    assert refusals(market, "in-the-next-life")["big1"] == "draining"
    lines = list(lines_of(market.state))
    assert {line.who for line in lines} == {own_name()}
    verbs = [line.verb for line in lines]
    assert verbs[-2:] == ["user add", "resource drain"]
    assert {"user remove", "resource add", "keys renew", "restart", "reload"} <= set(verbs)
