"""Submitting and quoting at the command line, in a market that runs."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.integration.market_cli.tiny_market import NAMES, balance

pytestmark = pytest.mark.slow  # a market of five processes

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
