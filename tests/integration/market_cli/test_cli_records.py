"""The command line in a market that runs: requests, and what it tells of purchases, accounts, machines and agents."""

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from ramp import connect
from ramp.control.events import MarketRefusalCode
from ramp.model.instant import HOUR
from ramp.protocol.events import MachineAsked
from tests.blocking_line import connected
from tests.integration.market_cli.tiny_market import NAMES, balance
from tests.waiting import until

pytestmark = pytest.mark.slow  # a market of five processes


def test_what_was_bought_is_shown_under_each_of_its_ids_and_can_be_cancelled(ramp, request_file):
    bought = ramp("submit", request_file(8), "--json")[1]
    (unit,) = bought["units"]
    agreement_id, reservation_id, request_id = unit["agreement_id"], unit["reservation_id"], bought["request_id"]
    listed = {entry["agreement_id"]: entry for entry in ramp("reservations", "--json")[1]}[agreement_id]
    assert (listed["state"], listed["reservation_id"], listed["cost"]) == ("active", reservation_id, unit["cost"])
    for any_id in (agreement_id, reservation_id, agreement_id[:20]):
        assert ramp("show", any_id, "--json")[1]["agreement_id"] == agreement_id
    assert ramp("show", request_id, "--json")[1] == ramp("status", request_id, "--json")[1] == bought
    assert f"--reservation={reservation_id} " in ramp("show", request_id, "--as", "sbatch")[1]
    paid = balance(ramp)
    code, (cancelled,), _ = ramp("cancel", reservation_id, "--reason", "no longer needed", "--json")
    assert (code, cancelled["cancelled"], cancelled["refund"]) == (0, True, unit["cost"])
    assert balance(ramp) == paid + Decimal(unit["cost"])
    assert agreement_id not in {entry["agreement_id"] for entry in ramp("reservations", "--json")[1]}
    history = {entry["agreement_id"]: entry["state"] for entry in ramp("reservations", "--all", "--json")[1]}
    assert history[agreement_id] == "cancelled"
    for any_id in (agreement_id, request_id):  # again, which refunds nothing
        code, (again,), _ = ramp("cancel", any_id, "--json")
        assert (code, again["cancelled"], again["code"], again["refund"]) == (0, True, "already_cancelled", "0.00")
    code, text, _ = ramp("cancel", agreement_id)
    assert (code, "already cancelled" in text) == (0, True)
    assert balance(ramp) == paid + Decimal(unit["cost"])
    for shown in (ramp("show", agreement_id, "--json")[1], *ramp("status", request_id, "--json")[1]["units"]):
        assert (shown["charged"], shown["returned"], shown["cost"]) == (unit["cost"], unit["cost"], "0.00")
    (listed,) = [each for each in ramp("status", "--json")[1] if each["request_id"] == request_id]
    assert (listed["charged"], listed["returned"], listed["cost"]) == (unit["cost"], unit["cost"], "0.00")
    assert "Returned (credits)" in ramp("status")[1]
    assert "credits returned)" in ramp("status", request_id)[1]


def test_the_keeper_refunds_an_agreement_once(ramp, request_file):
    unit = ramp("submit", request_file(8), "--json")[1]["units"][0]
    paid, agreement_id = balance(ramp), unit["agreement_id"]
    for _ in range(2):
        code, made, _ = ramp("bank", "refund", agreement_id[:24], "--reason", "down all night", "--json")
        assert (code, made["agreement_id"], made["refund"]) == (0, agreement_id, unit["cost"])
        assert balance(ramp) == paid + Decimal(unit["cost"])
    until(lambda: ramp("show", agreement_id, "--json")[1]["state"] == "cancelled", "the bank tells its buyer")
    assert ramp("show", agreement_id, "--json")[1]["returned"] == unit["cost"]
    assert "down all night" in ramp("events", "--changes")[1]
    code, _, said = ramp("bank", "refund", "nothing", "--reason", "none")
    assert (code, "there is no payment for nothing" in said) == (1, True)


def test_status_lists_every_request_with_its_end(ramp, request_file):
    bought, cheap = (ramp("submit", request_file(8, price=price), "--json")[1] for price in (70, 5))
    listed = {entry["request_id"]: entry for entry in ramp("status", "--json")[1]}
    assert listed[bought["request_id"]]["status"] == "committed"
    assert listed[bought["request_id"]]["cost"] == bought["cost"] > "0.00"
    assert (listed[cheap["request_id"]]["status"], listed[cheap["request_id"]]["cost"]) == ("no_offers", "0.00")
    short = next(line.split()[0] for line in ramp("status")[1].splitlines() if cheap["request_id"][8:14] in line)
    assert cheap["request_id"].removeprefix("request-").startswith(short)
    assert ramp("status", short, "--json")[1] == ramp("show", short, "--json")[1] == cheap


def test_the_statement_adds_up(ramp, request_file):
    bought = ramp("submit", request_file(8), "--json")[1]
    statement = ramp("balance", "--statement", "--json")[1]
    assert sum(Decimal(line["amount"]) for line in statement["lines"]) == Decimal(statement["balance"])
    assert statement["lines"][0]["kind"] == "deposit"
    last = {line["agreement_id"]: line for line in statement["lines"]}[bought["units"][0]["agreement_id"]]
    assert last["amount"] == f"-{bought['cost']}"
    rows = list(csv.DictReader(ramp("balance", "--statement", "--csv")[1].splitlines()))
    assert rows == [{key: value or "" for key, value in line.items()} for line in statement["lines"]]
    (row,) = csv.DictReader(ramp("balance", "--csv")[1].splitlines())
    assert row | {"time": ""} == {key: statement[key] for key in row} | {"time": ""}
    assert ramp("balance", "--statement", "--csv", "--json")[0] == 2
    assert ramp("balance", "--statement", "--since", "+1h", "--json")[1]["lines"] == []
    assert ramp("balance", "--statement", "--since", "2026-02-02", "--until", "2026-01-01")[0] == 2


def test_an_agreement_is_verified_offline(ramp, request_file, tmp_path, swarm):
    (file,) = ramp("submit", request_file(8), "--json")[1]["agreements"]
    code, report, _ = ramp("verify", file, "--json")
    assert (code, report["holds"]) == (0, True)
    assert report["signatures"][0]["signer"] == "alice@localhost"
    assert ramp("verify", file, "--ca", swarm / "keys" / "ca.pem")[0] == 0
    forged = tmp_path / "forged.xml"
    forged.write_text(Path(file).read_text().replace('cores="8"', 'cores="80"'))
    code, report, _ = ramp("verify", forged, "--json")
    assert (code, report["holds"]) == (1, False)
    assert report["failure"]
    assert ramp("verify", forged, "--ca", forged)[0] == 2
    assert ramp("verify", tmp_path / "none.xml")[0] == 2


def test_qstat_shows_the_machine_with_its_reservations(ramp, request_file):
    unit = ramp("submit", request_file(8), "--json")[1]["units"][0]
    code, snapshot, _ = ramp("qstat", unit["resource"], "--horizon", "2h", "--json")
    assert code == 0
    assert unit["reservation_id"] in {entry["reservation_id"] for entry in snapshot["reservations"]}
    assert (snapshot["cores"], snapshot["source"]) == (512, "synthetic")
    code, text, _ = ramp("qstat", unit["resource"])
    assert unit["reservation_id"] in text
    assert "synthetic workload" in text
    assert "projected load over 1 d" in text


def test_resources_are_those_of_the_directory(ramp):
    assert {entry["resource"] for entry in ramp("resources", "--json")[1]} == NAMES
    loaded = ramp("resources", "--load", "--json")[1]
    assert {(entry["cores"], entry["load"] >= 0.25, entry["source"]) for entry in loaded} == {(512, True, "synthetic")}
    assert {entry["resource"]: entry["start_price"] for entry in loaded} == {"alpha": 40, "beta": 60, "gamma": 90}
    assert {(entry["cores_free"] <= 384, entry["architecture"]) for entry in loaded} == {(True, "x86_64")}
    text = ramp("resources")[1]
    assert "Start price (credits/core-hour)" in text
    (name, cores, _, _, architecture, price, *_) = next(
        line.split() for line in text.splitlines() if line.startswith("beta")
    )
    assert (name, cores, architecture, price) == ("beta", "512", "x86_64", "60")
    assert [entry.keys() for entry in ramp("resources", "--brief", "--json")[1]] == [
        {"resource", "address", "site", "draining"}
    ] * 3
    assert ramp("resources", "--brief", "--load")[0] == 2


def test_a_slot_that_has_not_begun_is_upcoming(ramp, request_file):
    unit = ramp("submit", request_file(8), "--json")[1]["units"][0]
    line = next(line for line in ramp("reservations")[1].splitlines() if line.startswith(unit["reservation_id"] + " "))
    assert line.split()[1] == "upcoming"
    assert "upcoming" in ramp("show", unit["reservation_id"])[1]


def test_ps_shows_every_agent(ramp, swarm):
    code, shown, _ = ramp("ps", "--json")
    assert (code, shown["running"]) == (0, True)
    assert {agent["name"] for agent in shown["agents"]} == NAMES | {"alice", "bob", "bank", "directory", "keeper"}
    assert {agent["state"] for agent in shown["agents"]} == {"ready"}
    assert "gamma" in ramp("ps")[1]
    assert ramp("config", "--json")[1]["path"].endswith("market.toml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("balance", "--user", "carol"), "unknown user 'carol': expected one of alice, bob"),
        (("show", "nothing"), "unknown request, agreement or reservation 'nothing'"),
        (("cancel", "nothing"), "unknown request, agreement or reservation 'nothing'"),
        (("status", "nothing"), "unknown request 'nothing'"),
        (("show", "nothing", "--as", "sbatch", "--json"), "--as and --json exclude each other"),
        (("up", "--detach"), "a market is already running with this state folder"),
    ],
)
def test_bad_input(ramp, arguments, told):
    code, text, said = ramp(*arguments)
    assert (code, text) == (2, "")
    assert told in said
    assert "launching" not in said


@pytest.mark.parametrize("content", ["", "no xml", "<RequestForQuotation/>", "<!DOCTYPE x><x/>"])
def test_what_is_no_request_is_refused_before_anybody_is_asked(ramp, tmp_path, content):
    path = tmp_path / "bad.xml"
    path.write_text(content)
    code, text, said = ramp("submit", path)
    assert (code, text) == (2, "")
    assert str(path) in said


def test_a_question_that_cannot_be_sent_is_refused_at_once(ramp, swarm):
    """Its receiver has no valid address, or no document carries its values."""
    code, _, said = ramp("balance", "--statement", "--since", "0001-01-01")
    assert (code, "1970" in said, "no answer" in said) == (2, True, False), said
    with connect(swarm) as market, connected(market.access.open) as line:
        for name in ("a b", "", "a/b", "a" * 1100, "a@b c", "one@elsewhere"):
            (refused,) = line.events(MachineAsked("", name, HOUR))
            assert (refused.code, refused.reason != "") == (MarketRefusalCode.NOT_UNDERSTOOD, True), refused


ROUND_FIELDS = {"round", "asked", "offers", "refusals", "duration_s"}
UNIT_FIELDS = {"unit", "resource", "cpu_hour_cost", "cost", "reservation_id", "start", "end", "cores"}


def test_submit_buys_pays_and_prints_one_object(ramp, request_file):
    before = balance(ramp)
    code, bought, _ = ramp("submit", request_file(8), "--json", "--rounds", "2")
    assert code == 0
    assert bought["status"] == "committed"
    assert bought["reason"] == ""
    assert len(bought["rounds"]) == 2
    assert all(entry.keys() >= ROUND_FIELDS for entry in bought["rounds"])
    assert bought["rounds"][0]["asked"] == {"1": 70}
    assert {offer["resource"] for offer in bought["rounds"][0]["offers"]} <= NAMES
    refused = [(entry["resource"], entry["unit"], entry["reason"]) for entry in bought["rounds"][0]["refusals"]]
    assert refused == [("gamma", 1, "price_below_minimum")]  # its minimum is 80
    (unit,) = bought["units"]
    assert unit.keys() >= UNIT_FIELDS
    assert Decimal(unit["cost"]) == unit["cpu_hour_cost"] * 8  # for an hour
    assert balance(ramp) == before - Decimal(unit["cost"])
    (file,) = bought["agreements"]
    assert Path(file).is_file()
    assert bought["duration_s"] > 0


def test_several_files_are_one_request_with_the_units_in_their_order(ramp, request_file):
    first, second = request_file(16, name="first.xml"), request_file(8, name="second.xml")
    code, bought, _ = ramp("submit", second, first, "--json")
    assert code == 0
    assert [(unit["cores"], unit["cores_asked"]) for unit in bought["units"]] == [(8, 8), (16, 16)]
    assert len(bought["agreements"]) == 2
    assert ramp("submit", first, first)[0] == 2


def test_too_cheap_a_request_is_not_bought_and_says_what_would_pass(ramp, request_file):
    before = balance(ramp)
    path = request_file(8, price=5)
    code, ended, _ = ramp("submit", path, "--json")
    assert (code, ended["status"], ended["agreements"]) == (1, "no_offers", [])
    nearest = {entry["resource"]: entry["nearest"] for entry in ended["rounds"][0]["refusals"]}
    assert nearest.keys() == NAMES
    assert nearest["alpha"].startswith("20 ")  # its minimum price
    code, text, _ = ramp("submit", path)
    assert code == 1
    assert "alpha: 20 credits/core-hour" in text
    assert balance(ramp) == before


def test_the_best_offer_is_bought_only_when_told_so(ramp, request_file):
    code, _, said = ramp("submit", request_file(8, price=5), "--approve", "best-offer")
    assert (code, "--max-cost" in said) == (2, True), "it has no limit: the units' are not met"
    options = ("--approve", "best-offer", "--max-cost", "9999", "--json")
    code, bought, _ = ramp("submit", request_file(8, price=5), *options)
    assert (code, bought["status"]) == (0, "committed")
    (unit,) = bought["units"]
    assert (unit["meets_request"], unit["cpu_hour_cost"] >= 20) == (False, True)


def test_the_second_offer_of_a_quote_is_bought_once_at_the_price_shown(ramp, request_file):
    before = balance(ramp)
    code, quoted, _ = ramp("quote", request_file(8), "--json", "--rounds", "1")
    assert (code, quoted["status"], quoted["until"] is not None) == (0, "quoted", True)
    best, second = quoted["units"][0], quoted["others"][0]
    assert {best["resource"], second["resource"]} <= NAMES
    assert Decimal(best["cost"]) <= Decimal(second["cost"])
    for numbers, fault in (("3", "unit 1 has offers 1 to 2, got 3"), ("1,1", "one number for each of the 1 units")):
        code, _, said = ramp("quote", "--buy", numbers, quoted["request_id"])
        assert (code, fault in said) == (2, True), said
    code, bought, _ = ramp("quote", "--buy", "2", quoted["request_id"], "--json")
    assert (code, bought["status"], bought["request_id"]) == (0, "committed", quoted["request_id"])
    (unit,) = bought["units"]
    assert (unit["resource"], unit["cost"], unit["start"]) == (second["resource"], second["cost"], second["start"])
    assert balance(ramp) == before - Decimal(second["cost"])
    code, _, said = ramp("quote", "--buy", "1", quoted["request_id"])
    assert (code, "is committed, expected a quote" in said) == (2, True), said
    assert balance(ramp) == before - Decimal(second["cost"])


def test_a_quote_buys_nothing(ramp, request_file):
    before, had = balance(ramp), len(ramp("reservations", "--json")[1])
    code, quoted, _ = ramp("quote", request_file(8), "--json")
    assert (code, quoted["status"], quoted["agreements"], quoted["cost"]) == (0, "quoted", [], "0.00")
    assert quoted["units"][0]["reservation_id"] == ""
    assert Decimal(quoted["units"][0]["cost"]) > 0
    assert (balance(ramp), len(ramp("reservations", "--json")[1])) == (before, had)
    assert ramp("quote", request_file(8, price=5), "--json")[0] == 1


def test_a_request_without_window_can_be_bought(ramp, tmp_path):
    path = tmp_path / "plain.xml"
    assert ramp("rfq", "new", "--cores", "8", "--walltime", "1h", "--price", "70", "-o", path)[0] == 0
    code, bought, _ = ramp("submit", path, "--json")
    assert (code, bought["status"]) == (0, "committed")


def test_asking_needs_a_terminal(ramp, request_file):
    code, text, said = ramp("submit", request_file(), "--approve", "ask")
    assert (code, text) == (2, "")
    assert "needs a terminal" in said
