"""Simulated markets under faults: no invariant breaks, every planted bug does."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.model.instant import MILLISECOND, MINUTE, SECOND
from simulation.market.fault_plan import FaultPlan, draw_fault_plan
from simulation.market.network import Isolation, NetworkFaults
from simulation.market.planted_bugs import PLANTED_BUGS
from simulation.market.swarm import replay_seed, run_seed, summarise

SEEDS = range(150)
CRASHING = FaultPlan(
    NetworkFaults(loss=0.05, duplication=0.1, delay_mean=50 * MILLISECOND),
    crash=0.05,
    restart_mean=2 * SECOND,
    heal_after=2 * MINUTE,
)


def regressions() -> list[int]:
    lines = (Path(__file__).parent / "regressions.txt").read_text().splitlines()
    return [int(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]


def test_no_invariant_breaks_and_everything_happens() -> None:
    summary = summarise([run_seed(seed) for seed in SEEDS])
    assert [(each.seed, each.checker, each.violation) for each in summary.violations] == []
    # a swarm in which nothing happens or nothing goes wrong proves nothing
    assert set(summary.outcomes) == {"committed", "quoted", "no_offers", "withdrawn", "rejected", "failed"}
    assert summary.lost > 500
    assert summary.crashes > 100


@pytest.mark.parametrize("seed", regressions())
def test_regression(seed: int) -> None:
    assert run_seed(seed).violation is None
    assert run_seed(seed, wired=True).violation is None


EXPECTED = {
    "decision_not_persisted": "decision_is_final",
    "vote_before_persist": "vote_binds",
    "no_retransmission": "conversations_end",
    "hold_timer_ignored": "hold_deadline",
    "double_debit": "paid_and_reserved",
}


def test_every_planted_bug_has_its_checker() -> None:
    assert set(EXPECTED) == set(PLANTED_BUGS)


@pytest.mark.parametrize("bug", sorted(PLANTED_BUGS))
def test_planted_bug_is_caught_by_the_checker_of_its_invariant(bug: str) -> None:
    caught: Counter[str] = Counter()
    for seed in range(300):
        faults = CRASHING if bug == "vote_before_persist" else None
        report = run_seed(seed, bug, faults=faults)
        caught[report.checker] += report.violation is not None
        if caught[EXPECTED[bug]]:
            break
    assert caught[EXPECTED[bug]], f"{bug} was only seen as {dict(caught)}"
    assert run_seed(seed).violation is None  # without the bug the same market is sound


def test_the_heavily_crashing_plan_breaks_nothing_by_itself() -> None:
    assert [seed for seed in range(60) if run_seed(seed, faults=CRASHING).violation] == []


def test_one_seed_always_tells_the_same_story() -> None:
    for seed in (1, 8, 44):
        first, second = replay_seed(seed), replay_seed(seed)
        assert first == second
        assert len(first[1]) > 20


def test_two_seeds_tell_different_stories() -> None:
    assert replay_seed(1)[1] != replay_seed(2)[1]


def test_markets_over_real_xml_and_signatures_go_the_same_way() -> None:
    for seed in range(20):
        typed, wired = run_seed(seed), run_seed(seed, wired=True)
        assert wired.violation is None
        assert replace(wired) == typed


def test_an_isolated_party_is_reached_by_nobody() -> None:
    quiet = FaultPlan(heal_after=MINUTE)
    names = ("user0", "user1", "user2")
    cut = replace(quiet, isolations=tuple(Isolation(name, 0, MINUTE) for name in names))
    assert run_seed(5, faults=quiet).lost == 0
    assert run_seed(5, faults=cut).lost > 0


def test_plans_cut_lines_only_before_the_healing() -> None:
    plans = [draw_fault_plan(seed, ["res0", "user0"]) for seed in range(100)]
    cuts = [(plan, each) for plan in plans for each in plan.isolations]
    assert len(cuts) > 50
    assert all(0 <= each.since < each.until <= plan.heal_after for plan, each in cuts)


@pytest.mark.swarm
def test_many_seeds() -> None:
    assert [seed for seed in range(1000, 6000) if run_seed(seed).violation is not None] == []
