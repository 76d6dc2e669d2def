"""The market on live torus machines, run small: what is sold is accounted for, repeatable, and priced by its rules."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from ramp.model.instant import DAY
from ramp.model.slot import StaticTerms
from ramp.plugins.interface import PluginSettings
from ramp.protocol.resource.seller import PriceRange
from simulation.experiments.discovery import find_experiment
from simulation.experiments.torus_market import fragmentation, plots
from simulation.experiments.torus_market.demand import MarketCase
from simulation.experiments.torus_market.fragmentation import differences
from simulation.experiments.torus_market.runs import MarketRun, run_market, swarm_resources
from simulation.market import swarm
from simulation.market.specs import ResourceSpec
from simulation.market.world import START
from simulation.resource.modelled import open_plugin
from tests.swarm.markets import run

CASE = MarketCase("torus", (64, 1024, 8192), 0.5, "ramp", 2, 20.0, 75, seed=3)


@pytest.fixture(scope="module")
def market() -> MarketRun:
    return run_market(CASE)


@pytest.mark.slow
def test_sales_and_machines_add_up(market: MarketRun) -> None:
    assert market.row["requests"] > 20
    assert 0 < market.row["bought"] <= market.row["requests"]
    assert market.row["bought"] == len(market.sales) == sum(row["sales"] for row in market.machines)
    cores = {each.name: each.terms.cores for each in swarm_resources("torus")}
    for row in market.machines:
        assert 0 <= row["background"] + row["market"] <= 1
        core_time = sum(
            sale["cores"] * (sale["end"] - sale["start"])
            for sale in market.sales
            if sale["resource"] == row["resource"]
        )
        # sold windows may reach over the end of the two days, never over their begin
        assert row["market"] <= core_time / (cores[row["resource"]] * 2 * DAY) + 1e-4


@pytest.mark.slow
def test_the_days_add_up_to_the_whole(market: MarketRun) -> None:
    assert [row["day"] for row in market.days] == [0, 1]
    for count in ("requests", "bought"):
        assert sum(row[count] for row in market.days) == market.row[count]
    assert fmean(row["market"] for row in market.days) == pytest.approx(market.row["market"], abs=2e-4)
    # the whole is measured for an hour longer, until the last request has ended
    assert fmean(row["background"] for row in market.days) == pytest.approx(market.row["background"], abs=1 / 48)


@pytest.mark.slow
def test_prices_lie_between_the_machines_minimum_and_what_users_pay(market: MarketRun) -> None:
    minimum = {each.name: each.prices.minimum_price for each in swarm_resources("torus")}
    for sale in market.sales:
        assert minimum[sale["resource"]] <= sale["price"] <= CASE.price
        assert sale["placement"]


@pytest.mark.slow
def test_places_sold_for_one_time_never_meet(market: MarketRun) -> None:
    for index, one in enumerate(market.sales):
        for other in market.sales[index + 1 :]:
            if one["resource"] == other["resource"] and one["start"] < other["end"] and other["start"] < one["end"]:
                assert one["placement"].split()[0] != other["placement"].split()[0]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_market(market: MarketRun) -> None:
    again = run_market(CASE)
    assert again.sales == market.sales
    assert again.machines == market.machines


@pytest.mark.slow
def test_both_strategies_see_the_same_requests(market: MarketRun) -> None:
    priced = run_market(replace(CASE, pricing="fragmentation"))
    assert priced.row["requests"] == market.row["requests"]
    assert priced.sales != market.sales


@pytest.mark.slow
def test_only_tori_answer_requests_for_a_torus() -> None:
    run = run_market(MarketCase("quickstart", (1024,), 1.0, "ramp", 2, 10.0, 80, seed=1))
    assert run.row["refusals_first_round"]["torus_terms"] == 20 * run.row["requests"], "all of Table 2, every time"
    assert {sale["resource"] for sale in run.sales} <= {"bluegene1", "torus1"}, "the others have fewer cores"
    assert run.sales


def test_differences_compare_each_seed_with_itself() -> None:
    rows = [
        {"requests_a_day": 1.0, "seed": seed, "pricing": pricing, "mean_price": price, **dict.fromkeys(others, 0.0)}
        for others in [("success_rate", "mean_load", "background", "market", "mean_wait_h")]
        for seed, pricing, price in (
            (1, "ramp", 10.0),
            (1, "fragmentation", 12.0),
            (2, "ramp", 20.0),
            (2, "fragmentation", 26.0),
        )
    ]
    (price,) = [row for row in differences(rows) if row["measure"] == "mean_price"]
    assert (price["ramp"], price["fragmentation"], price["difference"]) == (15.0, 19.0, 4.0)
    assert price["deviation"] == pytest.approx(8**0.5, abs=1e-4)


@pytest.mark.slow
def test_tables_and_pictures_say_which_workloads_are_stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(case: MarketCase) -> MarketRun:
        sold = [{"resource": name, "price": 50, "load": 0.5} for name in ("intrepid3", "bluegene1")]
        row = dict.fromkeys(("success_rate", "mean_price", "mean_load", "background", "market", "mean_wait_h"), 0.5)
        return MarketRun(row | {"refusals_first_round": {}}, [{"resource": "bluegene1"}], sold, [])

    monkeypatch.setattr(fragmentation, "run_market", bare)
    summary = fragmentation.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    with (tmp_path / "sales.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    workloads = {row["resource"]: row["workload"] for row in rows}
    assert workloads["intrepid3"] == "stand-in"  # Intrepid's log is not public
    assert set(workloads) == {"intrepid3", "bluegene1"}
    assert "intrepid (stand-in)" in {plots._kind(row) for row in rows}
    assert "synthetic" in summary["note"]
    assert any(summary["note"] in line for line in find_experiment("torus-market").tell(summary))


@pytest.mark.slow
def test_the_quick_experiments_leave_their_files(tmp_path: Path) -> None:
    for name in ("torus-market", "torus-market-fragmentation", "torus-market-month"):
        out = tmp_path / name
        out.mkdir()
        experiment = find_experiment(name)
        summary = experiment.run(out, quick=True, seed=1, processes=1, on_progress=None)
        assert len(experiment.tell(summary)) > 2
        assert {"summary.json", "machines.csv"} <= {path.name for path in out.iterdir()}
        assert any(path.suffix == ".png" for path in out.iterdir())


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 2 else []) for seed in range(1, 7)]
)
def test_the_protocol_keeps_its_invariants_on_live_machines_under_faults(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swarm's small markets, with every checker, where each machine is a live torus."""

    def live_resource(name: str, random: Random, _: Random | None) -> ResourceSpec:
        options = {"machine": random.choice(("angara-4x4x2", "angara-4x2x2x2")), "load": random.choice((0, 0.5))}
        settings = PluginSettings(name, 256, 8, START, options | {"base_time_s": 86_400}, seed=seed)
        minimum = random.randint(20, 60)
        prices = PriceRange(minimum + random.randint(0, 40), minimum)
        return ResourceSpec(name, open_plugin(settings), StaticTerms(256, 8, torus=True), prices)

    monkeypatch.setattr(swarm, "_draw_resource", live_resource)
    report = run(seed)
    assert report.violation is None, f"{report.checker}: {report.violation}"
    assert report.messages > 0
