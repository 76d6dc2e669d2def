"""The experiment on auction rules: sellers that bid as they say, markets measured by what must hold, and its files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.model.offer import RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from simulation.experiments.market import auction_rules
from simulation.experiments.market.auction_rules import Case, run_case, shading, truthful
from simulation.experiments.trials.plan import table2_resources

QUESTION = PriceQuestion(asking=80, start_price=70, minimum_price=40, load=0.0)


def test_the_truthful_say_what_they_need() -> None:
    assert [truthful(replace(QUESTION, asking=price)) for price in (80, 41, 40)] == [40, 40, 40]
    assert truthful(replace(QUESTION, asking=39)) == PriceRefusal(RefusalCode.PRICE, 40)


def test_the_shading_ask_halfway_and_then_undercut_down_to_their_need() -> None:
    later = replace(QUESTION, round_number=2)
    assert shading(QUESTION) == 55
    assert [shading(replace(later, asking=price)) for price in (55, 50, 41)] == [55, 49, 40]
    assert shading(replace(later, asking=40)) == PriceRefusal(RefusalCode.PRICE, 40)
    assert shading(replace(later, asking=50, own_last=50)) == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)


def test_truthful_sellers_by_second_price_are_paid_what_the_next_one_needs() -> None:
    """All machines are empty: seven of the cheapest need are not used up, so each request meets the same two bids."""
    needs = sorted(each.prices.minimum_price for each in table2_resources())
    row = run_case(Case(SECOND_PRICE, 1, 0.0, "truthful", 1, seed=1))
    assert (row["sold"], row["of"], row["distance"]) == (auction_rules.REQUESTS, auction_rules.REQUESTS, 0.0)
    assert row["need"] == needs[0]
    assert needs[0] <= row["price"] <= needs[2]
    first = run_case(Case("sealed-first-price", 1, 0.0, "truthful", 1, seed=1))
    assert (first["price"], first["gain"]) == (needs[0], 0.0)


def test_load_takes_slots_away_and_the_cheapest_allocation_with_them() -> None:
    empty, full = (run_case(Case(SECOND_PRICE, 1, load, "truthful", 2, seed=1)) for load in (0.0, 0.9))
    assert full["need"] > empty["need"]
    assert full["cheapest"] > empty["cheapest"]
    assert full["distance"] == 0.0


@pytest.mark.slow
def test_more_rounds_of_open_bidding_by_the_papers_formula_cost_less() -> None:
    prices = [run_case(Case("open-rounds", count, 0.3, "paper", 1, seed=1))["price"] for count in (1, 3, 8)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] > prices[-1]


@pytest.mark.slow
def test_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        auction_rules, "SELLERS", {name: auction_rules.SELLERS[name] for name in ("truthful", "shading")}
    )
    summary = auction_rules.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    with (tmp_path / "rules.csv").open() as file:
        table = list(csv.DictReader(file))
    assert {(row["rule"], row["rounds"]) for row in table} == {
        ("open-rounds", "1"), ("open-rounds", "3"), ("sealed-first-price", "1"), ("second-price", "1"),
    }  # fmt: skip
    assert {row["load"] for row in table} == {"0.0", "0.6"}
    assert (tmp_path / "rules.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "summary.json").read_text())["table"] == summary["table"]
    text = (tmp_path / "columns.md").read_text()
    assert all(f"`{column}`" in text or column in text for column in table[0])
    assert summary["verdicts"]["DIFFERS"] == 0
    assert any("second-price" in line for line in auction_rules.EXPERIMENTS[0].tell(summary))
