"""The studies of `examples/studies`: each runs as it stands, and what it counts adds up."""

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import pytest

from ramp.cli.main import main
from ramp.declarations import load_file
from ramp.model.instant import DAY, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.sizes.moldable import moldable_problems, run_time_with
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from simulation.experiments.angara.runs import FIND_SYSTEMS, Setting, System
from simulation.experiments.study import Found, Run, Study
from simulation.experiments.trials.plan import table2_resources
from simulation.experiments.trials.simulated import run_simulated
from simulation.workload.logs import find_log

FOLDER = Path(__file__).parents[2] / "examples" / "studies"
MODULES = {path.stem: load_file(path) for path in sorted(FOLDER.glob("*.py"))}
RULES, BLUE_GENE, LARGE, LOGS = (
    MODULES[name] for name in ("auction_rules", "blue_gene", "large_markets", "malleable_logs")
)
STUDIED = ("malleable_tori", "queue_bound", "torus_market", "two_hosts")
TORI, QUEUES, TORUS, TWO_HOSTS = (MODULES[name] for name in STUDIED)
STUDIES = {
    f"{module.__file__}:{name}": study
    for module in MODULES.values()
    for name, study in vars(module).items()
    if isinstance(study, Study)
}
NEED_LOGS = (BLUE_GENE, MODULES["granularity"], TORI)


def skip_where_impossible(module: ModuleType) -> None:
    if module in NEED_LOGS and not all(map(find_log, ("CTC-SP2-1996-3.1-cln", "SDSC-SP2-1998-4.2-cln"))):
        pytest.skip("the logs of the Blue Gene/L study are not on this computer")
    if module is TWO_HOSTS and (reason := TWO_HOSTS.reason_against()):
        pytest.skip(reason)


def test_every_file_of_the_folder_is_here() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == {Path(place.split(":")[0]).name for place in STUDIES}
    assert len({study.name for study in STUDIES.values()}) == len(STUDIES) == 19


@pytest.mark.slow
@pytest.mark.parametrize("place", STUDIES, ids=lambda place: STUDIES[place].name)
def test_it_runs_as_it_stands(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = STUDIES[place]
    skip_where_impossible(load_file(Path(place.rpartition(":")[0])))
    assert main(["experiment", "run", place, "--out", str(tmp_path), "--quick", "--processes", "1"]) == 0
    summary = json.loads((tmp_path / study.name / "summary.json").read_text())
    assert set(study.figures) <= set(summary["files"])
    assert all(summary[one.table] for one in study.shown)
    machines = [row for path in tmp_path.rglob("machines.csv") for row in csv.DictReader(path.open())]
    assert all(row.get("background_jobs") != "0" for row in machines), "own users' jobs that ended are counted"
    assert all(row["verdict"] and (row["why"] or row["verdict"].startswith("agrees")) for row in summary["comparison"])
    assert len(capsys.readouterr().out.splitlines()) > 3


# -- auction rules -----------------------------------------------------------------------------------------------------

QUESTION = PriceQuestion(asking=80, start_price=70, minimum_price=40, load=0.0)


def test_the_truthful_say_what_they_need() -> None:
    assert [RULES.truthful(replace(QUESTION, asking=price)) for price in (80, 41, 40)] == [40, 40, 40]
    assert RULES.truthful(replace(QUESTION, asking=39)) == PriceRefusal(RefusalCode.PRICE, 40)


def test_the_shading_ask_halfway_and_then_undercut_down_to_their_need() -> None:
    later = replace(QUESTION, round_number=2)
    assert RULES.shading(QUESTION) == 55
    assert [RULES.shading(replace(later, asking=price)) for price in (55, 50, 41)] == [55, 49, 40]
    assert RULES.shading(replace(later, asking=40)) == PriceRefusal(RefusalCode.PRICE, 40)
    assert RULES.shading(replace(later, asking=50, own_last=50)) == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)


def test_truthful_sellers_by_second_price_are_paid_what_the_next_one_needs() -> None:
    """All machines are empty: seven of the cheapest need are not used up, so each request meets the same two bids."""
    needs = sorted(each.prices.minimum_price for each in table2_resources())
    row = RULES.run_case(RULES.Case(SECOND_PRICE, 1, 0.0, "truthful", 1, seed=1))
    assert (row["sold"], row["of"], row["distance"]) == (RULES.REQUESTS, RULES.REQUESTS, 0.0)
    assert row["need"] == needs[0]
    assert needs[0] <= row["price"] <= needs[2]
    first = RULES.run_case(RULES.Case("sealed-first-price", 1, 0.0, "truthful", 1, seed=1))
    assert (first["price"], first["gain"]) == (needs[0], 0.0)


# -- readings of the Angara study --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_any_free_nodes_are_the_ceiling_of_what_boxes_can_do() -> None:
    readings = MODULES["angara_readings"]
    boxes, ceiling = (
        readings.run_reading(Setting(System((4, 3, 3)), method, 8, 0.3, 1))
        for method in (FIND_SYSTEMS, readings.ANY_NODES)
    )
    assert ceiling["allocated"] == ceiling["utilisation"] >= boxes["utilisation"] - 0.01


def test_sizes_of_a_reading_are_powers_of_two_alone() -> None:
    assert set(MODULES["angara_readings"].PowersOfTwo(36, 0.65).shares) == {1, 2, 4, 8, 16, 32}


# -- large markets -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_crowd_is_not_answered_with_still_more_messages() -> None:
    """A hundred users at once keep twenty resources busy for seconds: almost every late answer is waited for."""
    plan = next(each for each in LARGE.growing_markets(Run(True, 1, {})) if each.label == "20 resources, 100 users")
    result = run_simulated(replace(plan, round_trips_cost=True))
    calls = len(plan.resources) * plan.users
    assert all(auction.sold for auction in result.auctions)
    assert max(auction.outcome.duration for auction in result.auctions) > 2 * SECOND  # else there is no crowd
    assert sum(auction.called_again for auction in result.auctions) < calls // 10


# -- malleable jobs ----------------------------------------------------------------------------------------------------


def test_spans_of_a_log_count_as_one_by_their_jobs_and_times() -> None:
    """By hand: 10 jobs of 1 h and 30 of 5 h are 40 of 4 h; 2 h at 50 % and 6 h at 90 % are 8 h at 80 %."""

    def row(jobs: int, hours: float, makespan: float, utilisation: float) -> dict[str, Any]:
        named = {"log": "CTC", "strategy": "minimum", "share": 0.2, "seed": 1, "speed_up_known": True}
        measured = {"wait_h": hours / 2, "turnaround_h": hours, "makespan_h": makespan, "utilisation": utilisation}
        return {**named, "jobs": jobs, **measured}

    rigid = [row(10, 8.0, 4.0, 0.4), row(30, 8.0, 4.0, 0.6)]
    (line,) = LOGS.against_easy([row(10, 1.0, 2.0, 0.5), row(30, 5.0, 6.0, 0.9)], rigid)
    assert [line[name] for name in LOGS.CHANGES] == pytest.approx([-50.0, -50.0, 0.0, 60.0])


def test_waits_on_tori_are_compared_seed_by_seed_with_those_of_rigid_jobs() -> None:
    """Halved on the flat machine, as ever on the torus."""
    found = Found(Run(True, 1, {}), {"runs": TORI.cases(Run(True, 1, {}))})

    def made(setting: Any) -> Mapping[str, Any]:
        wait = 10.0 * setting.seed * (0.5 if setting.flat and setting.share else 1)
        named = {"machine": setting.machine, "case": setting.case, "places": "no" if setting.flat else "yes"}
        more = {"share": setting.share, "seed": setting.seed, "suspension_s": setting.suspension_s}
        return {**named, **more, **dict.fromkeys(TORI.MEASURES, 1.0), "wait_h": wait}

    found.answers = {"runs": [made(setting) for setting in found.cases["runs"]]}
    for name, table in TORI.STUDY.tables.items():
        found.tables[name] = table(found)
    for note in TORI.notes(found):
        assert "+0 ±0 %, +0 ±0 %, +0 ±0 % where places count, -50 ±0 %, -50 ±0 %, -50 ±0 % on a flat" in note


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["bgl", "angara-4x4x4"])
def test_the_same_jobs_run_with_places_and_without(machine: str) -> None:
    """Nothing is refused anywhere, rigid jobs never change, and malleable ones do."""
    skip_where_impossible(TORI)
    case = "any box" if machine.startswith("angara") else "slim meshes"
    for flat in (False, True):
        malleable, rigid = (
            TORI.run_case(TORI.Setting(machine, case, flat, share, 0.6, 150, 1)) for share in (1.0, 0.0)
        )
        assert malleable["jobs"] == rigid["jobs"] == 150
        assert malleable["refused"] == rigid["refused"] == 0
        assert malleable["changed_jobs"] > 0 == rigid["changed_jobs"]


# -- markets on live tori ----------------------------------------------------------------------------------------------

CASE = TORUS.MarketCase("torus", (64, 1024, 8192), 0.5, "ramp", 2, 20.0, 75, seed=3)


@pytest.fixture(scope="module")
def market() -> dict[str, Any]:
    found: dict[str, Any] = TORUS.run_market(CASE)
    return found


@pytest.mark.slow
def test_sales_and_machines_add_up(market: dict[str, Any]) -> None:
    assert market["row"]["requests"] > 20
    assert 0 < market["row"]["bought"] <= market["row"]["requests"]
    assert market["row"]["bought"] == len(market["sales"]) == sum(row["sales"] for row in market["machines"])
    cores = {each.name: each.terms.cores for each in TORUS.swarm_resources("torus")}
    for row in market["machines"]:
        assert 0 <= row["background"] + row["market"] <= 1
        core_time = sum(
            sale["cores"] * (sale["end"] - sale["start"])
            for sale in market["sales"]
            if sale["resource"] == row["resource"]
        )
        # sold windows may reach over the end of the two days, never over their begin
        assert row["market"] <= core_time / (cores[row["resource"]] * 2 * DAY) + 1e-4


@pytest.mark.slow
def test_the_days_add_up_to_the_whole(market: dict[str, Any]) -> None:
    assert [row["day"] for row in market["days"]] == [0, 1]
    for count in ("requests", "bought"):
        assert sum(row[count] for row in market["days"]) == market["row"][count]
    assert fmean(row["market"] for row in market["days"]) == pytest.approx(market["row"]["market"], abs=2e-4)
    # the whole is measured for an hour longer, until the last request has ended
    assert fmean(row["background"] for row in market["days"]) == pytest.approx(market["row"]["background"], abs=1 / 48)


@pytest.mark.slow
def test_only_tori_answer_requests_for_a_torus() -> None:
    run = TORUS.run_market(TORUS.MarketCase("quickstart", (1024,), 1.0, "ramp", 2, 10.0, 80, seed=1))
    assert run["row"]["refusals_first_round"]["torus_terms"] == 20 * run["row"]["requests"], (
        "all of Table 2, every time"
    )
    assert {sale["resource"] for sale in run["sales"]} <= {"bluegene1", "torus1"}, "the others have fewer cores"
    assert run["sales"]


def test_requests_differ_between_shares_only_in_who_leaves_the_size_to_the_seller() -> None:
    case = replace(CASE, days=10, requests_a_day=48.0)
    shares = (0.0, 0.2, 1.0)
    rigid, some, every = (TORUS.requests_of(replace(case, moldable_share=each), TORUS.OPENING) for each in shares)
    assert len(rigid) > 300
    assert [(at, replace(unit, moldable=None)) for at, unit in every] == rigid
    assert all(unit.moldable is not None for _, unit in every)
    chosen = [(here, there) for here, there in zip(some, every, strict=True) if here[1].moldable]
    assert all(here == there for here, there in chosen)
    assert 0.1 < len(chosen) / len(rigid) < 0.3
    for _, unit in every:
        assert moldable_problems(unit) == ()
        assert run_time_with(unit, unit.cores.total) == unit.wall_time


def test_each_seed_is_compared_with_itself() -> None:
    """Every seed sells at 10 more than the last; all moldable pay 2 less, with 20 % 0 or 2 less by turns."""
    found = Found(Run(True, 1, {}), {"runs": TORUS.moldable_shares(Run(True, 1, {}))})

    def row(case: Any) -> dict[str, Any]:
        less = 2.0 if case.moldable_share == 1 else 10 * case.moldable_share * (case.seed % 2)
        return {**dict.fromkeys(TORUS.MEASURES, 0.5), "mean_price": 60.0 + 10 * case.seed - less}

    found.tables["markets"] = [{**TORUS.labels(case), **row(case)} for case in found.cases["runs"]]
    _, some, every = TORUS.against_first("moldable_share")(found)
    assert (every["mean_price"], every["mean_price_change"], every["mean_price_change_half"]) == (73.0, -2.0, 0.0)
    # -2 and 0: mean -1, deviation sqrt(2), and Student's t of 12.706 with one degree of freedom over sqrt(2)
    assert (some["mean_price_change"], some["mean_price_change_half"]) == (-1.0, 12.706)
