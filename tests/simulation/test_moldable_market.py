"""The experiment with moldable requests on live tori: what is drawn, what it says of its runs, and one real run."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.model.sizes.moldable import moldable_problems, run_time_with
from ramp.model.sizes.speed_up import AmdahlLaw, DowneyLaw, law_of
from simulation.experiments.discovery import find_experiment
from simulation.experiments.torus_market import moldable_study
from simulation.experiments.torus_market.demand import MarketCase, requests_of
from simulation.experiments.torus_market.runs import OPENING

CASE = MarketCase("torus", (64, 16_384), 0.5, "ramp", 10, 48.0, 80, seed=1)


def test_requests_differ_between_shares_only_in_who_leaves_the_size_to_the_seller() -> None:
    rigid, some, every = (requests_of(replace(CASE, moldable_share=share), OPENING) for share in (0.0, 0.2, 1.0))
    assert len(rigid) > 300
    assert [(at, replace(unit, moldable=None)) for at, unit in every] == rigid
    assert all(unit.moldable is not None for _, unit in every)
    assert any(unit.torus for _, unit in every), "those that want a torus may leave their size, too"
    chosen = [(here, there) for here, there in zip(some, every, strict=True) if here[1].moldable]
    assert all(here == there for here, there in chosen)
    assert 0.1 < len(chosen) / len(rigid) < 0.3
    assert [here for here in some if not here[1].moldable] == [
        there for here, there in zip(some, rigid, strict=True) if not here[1].moldable
    ]


def test_moldable_requests_make_sense_and_keep_their_wall_time_at_the_size_asked() -> None:
    laws = {AmdahlLaw: 0, DowneyLaw: 0}
    for _, unit in requests_of(replace(CASE, moldable_share=1.0), OPENING):
        assert moldable_problems(unit) == ()
        terms, cores = unit.moldable, unit.cores.total
        assert terms is not None
        assert unit.wall_time is not None
        assert (terms.least, terms.most) == (cores // 2, cores * 4)
        assert run_time_with(unit, cores) == unit.wall_time
        law = law_of(terms.law)
        laws[type(law)] += 1
        # at most half of the run at the size asked is serial; half the cores never take more than twice as long
        if isinstance(law, AmdahlLaw):
            assert law.serial <= law.run_time(cores) * 0.51
        assert law.run_time(cores) <= law.run_time(cores // 2) <= 2 * law.run_time(cores)
    assert min(laws.values()) > 100


@pytest.fixture
def made() -> Callable[[MarketCase], dict[str, Any]]:
    """Every seed sells more than the last; all moldable it pays 2 less, with 20 % 0 or 2 less by turns."""

    def row(case: MarketCase) -> dict[str, Any]:
        less = 2.0 if case.moldable_share == 1 else case.moldable_share * 10 * (case.seed % 2)
        named = {"moldable_share": case.moldable_share, "seed": case.seed, "requests": 100, "moldable": 0, "bought": 50}
        measures = dict.fromkeys(moldable_study.MEASURES, 0.5) | {"price_as_asked": 60.0 + 10 * case.seed - less}
        refusals = {"cores_taken": 200} if case.moldable_share == 1 else {"machine_too_small": 100, "cores_taken": 200}
        return {**named, **measures, "cpu_s": 1.0, "refusals": refusals}

    return row


@pytest.mark.slow
def test_each_seed_is_compared_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[MarketCase], dict[str, Any]]
) -> None:
    monkeypatch.setattr(moldable_study, "run_moldable_market", made)
    summary = moldable_study.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    found = {(row["moldable_share"], row["measure"]): row for row in summary["changes"]}
    every = found[1.0, "price_as_asked"]
    assert (every["mean"], every["change"], every["change_half"], every["sure"]) == (73.0, -2.0, 0.0, "yes")
    some = found[0.2, "price_as_asked"]
    # -2 and 0: mean -1, deviation sqrt(2), and Student's t of 12.706 with one degree of freedom over sqrt(2)
    assert (some["change"], some["sure"]) == (-1.0, "no")
    assert some["change_half"] == pytest.approx(12.706)
    assert found[1.0, "refused_machine_too_small"]["change"] == -1.0
    few, all_of_them = summary["notes"]
    assert "sure are none" in few
    assert "sure are price_as_asked -2.000" in all_of_them
    assert {"runs.csv", "refusals.csv", "changes.csv", "columns.md", "moldable.png"} <= {
        one.name for one in tmp_path.iterdir()
    }
    assert len(find_experiment("torus-market-malleable").tell(summary)) > 30
    assert "comparison" not in summary or summary["comparison"] == []


@pytest.mark.slow
def test_a_market_that_sold_nothing_has_no_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[MarketCase], dict[str, Any]]
) -> None:
    none = dict.fromkeys(("price_as_asked", "price_a_core_hour", "size_ratio", "length_ratio"))
    monkeypatch.setattr(
        moldable_study, "run_moldable_market", lambda case: made(case) | (none if case.seed == 1 else {})
    )
    summary = moldable_study.run(tmp_path, quick=True, seed=1, processes=1, on_progress=None)
    (price,) = [row for row in summary["changes"] if (row["moldable_share"], row["measure"]) == (1.0, "price_as_asked")]
    assert (price["mean"], price["change"], price["sure"]) == (78.0, -2.0, "no")  # of seed 2 alone


@pytest.mark.slow
def test_the_real_market_sells_moldable_requests_by_their_law(tmp_path: Path) -> None:
    summary = moldable_study.run_days(tmp_path, days=1, seeds=(1,), processes=1)
    with (tmp_path / "runs.csv").open(encoding="utf-8", newline="") as stream:
        rigid, some, every = list(csv.DictReader(stream))
    assert rigid["requests"] == some["requests"] == every["requests"] == every["moldable"]
    assert int(rigid["moldable"]) == 0 < int(some["moldable"]) < int(every["moldable"])
    assert float(rigid["length_ratio"]) == 1.0 != float(every["length_ratio"])
    # nobody pays more for the run than the size asked would cost at the price asked
    assert 0 < float(every["price_as_asked"]) <= 80
    assert {row["moldable_share"] for row in summary["changes"]} == {0.0, 0.2, 1.0}
