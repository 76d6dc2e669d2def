"""Simulated markets under faults: no invariant breaks, every planted bug does."""

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND
from simulation import swarm
from simulation.market.actors import COMPOSITION
from simulation.market.drawing import draw_changes, draw_starts
from simulation.market.faults.breakdowns import Blow
from simulation.market.faults.plan import FaultPlan, draw_fault_plan
from simulation.market.network import FaultWindow, NetworkFaults
from simulation.market.party_clock import ClockFault, PartyClock
from simulation.market.seed_reports import summarise
from simulation.swarm import SeedMarket, run_seed
from tests.swarm.drawn_liars import draw_liars
from tests.swarm.liars import Habit
from tests.swarm.markets import replay, run
from tests.swarm.planted_bugs import PLANTED_BUGS

CRASHING = FaultPlan(
    NetworkFaults(loss=0.05, duplication=0.1, delay_mean=50 * MILLISECOND),
    crash=0.05,
    restart_mean=2 * SECOND,
    heal_after=2 * MINUTE,
)


REGRESSIONS = [
    int(seed)
    for line in (Path(__file__).parent / "regressions.txt").read_text().splitlines()
    if (seed := line.partition("#")[0].strip())
]
LATEST = REGRESSIONS[-6:]
"""Tried every time; `make slow` tries all."""


def test_no_invariant_breaks_and_much_happens() -> None:
    summary = summarise([run(seed) for seed in range(16)])
    assert [(each.seed, each.checker, each.violation) for each in summary.violations] == []
    assert len(summary.outcomes) >= 4
    assert min(summary.lost, summary.crashes, summary.late_answers, summary.in_doubt) > 0


@pytest.mark.slow
def test_no_invariant_breaks_and_everything_happens() -> None:
    summary = summarise([run(seed) for seed in range(60)])
    assert [(each.seed, each.checker, each.violation) for each in summary.violations] == []
    # a swarm in which nothing happens or nothing goes wrong proves nothing
    assert set(summary.outcomes) == {"committed", "quoted", "no_offers", "withdrawn", "rejected", "failed"}
    assert summary.lost > 200
    assert summary.crashes > 40
    assert summary.late_answers > 200
    assert summary.in_doubt > 40
    assert summary.unheard > 0  # their resource had crashed meanwhile


@pytest.mark.parametrize(
    "seed", [seed if seed in LATEST else pytest.param(seed, marks=pytest.mark.slow) for seed in REGRESSIONS]
)
def test_regression(seed: int) -> None:
    assert run(seed, ruled=False).violation is None  # as it was found


def test_a_liar_s_offer_that_meets_a_unit_ends_its_sealed_bidding() -> None:
    assert run(38976).violation is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", REGRESSIONS)
def test_regression_over_real_xml(seed: int) -> None:
    assert run(seed, wired=True).violation is None


SEEDS_MAX = 300
"""A change of the product may move what happens in a seed: then the bug must show in another one below this."""

CAUGHT_BY_CONSEQUENCE = {
    "vote_before_persist": range(50, 80),
    "decision_not_persisted": range(30),
    "accept_not_persisted": range(10, 40),
    "void_not_persisted": range(20, 50),
}
"""Seeds of which one shows what comes of a missing record even where nobody looks into journals."""


@cache
def is_sound(seed: int, ruled: bool, resized: bool) -> bool:
    """Whether no invariant breaks in the market of a seed; several bugs show in the same."""
    return run(seed, ruled=ruled, resized=resized).violation is None


def _first_of_their_checkers() -> set[str]:
    """Of each checker the bug that the lowest seed shows: tried every time; `make slow` tries all."""
    names = sorted(PLANTED_BUGS, key=lambda name: -PLANTED_BUGS[name].seed)
    return set({PLANTED_BUGS[name].checker: name for name in names}.values())


@pytest.mark.parametrize(
    "bug",
    [
        bug if bug in _first_of_their_checkers() else pytest.param(bug, marks=pytest.mark.slow)
        for bug in sorted(PLANTED_BUGS)
    ],
)
def test_planted_bug_is_caught_by_the_checker_of_its_invariant(bug: str) -> None:
    it = PLANTED_BUGS[bug]
    ruled = it.ruled or it.resized
    assert it.seed < SEEDS_MAX
    seeds = (it.seed, *range(SEEDS_MAX))
    shown = (seed for seed in seeds if run(seed, bug, ruled=ruled, resized=it.resized).checker == it.checker)
    seed = next(shown, None)
    assert seed is not None, f"{bug} was not seen by {it.checker}"
    assert is_sound(seed, ruled, it.resized)  # without the bug


@pytest.mark.parametrize(
    "bug",
    [
        bug if bug == "vote_before_persist" else pytest.param(bug, marks=pytest.mark.slow)
        for bug in sorted(CAUGHT_BY_CONSEQUENCE)
    ],
)
def test_a_missing_record_is_caught_by_what_comes_of_it(bug: str) -> None:
    def unread(market: SeedMarket) -> SeedMarket:
        return replace(market, checkers=[each for each in market.checkers if each.name != "written_before_said"])

    assert any(
        run(seed, bug, ruled=False, resized=False, alter=unread).violation for seed in CAUGHT_BY_CONSEQUENCE[bug]
    )


@pytest.mark.parametrize("seeds", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_the_heavily_crashing_plan_breaks_nothing_by_itself(seeds: int) -> None:
    assert [seed for seed in range(seeds) if run(seed, faults=CRASHING).violation] == []


def test_one_seed_always_tells_the_same_story_and_another_one_another() -> None:
    stories = {seed: replay(seed) for seed in (1, 8, 44)}
    assert stories == {seed: replay(seed) for seed in stories}
    assert len({tuple(lines) for _, lines in stories.values()}) == 3
    assert min(len(lines) for _, lines in stories.values()) > 20


def test_seeds_that_draw_rules_draw_the_rest_as_before() -> None:
    drawn = [seed for seed in range(60) if swarm.draw_rules(seed) is not None]
    assert 10 < len(drawn) < 30
    draws = (swarm.draw_rules, draw_starts)
    others = [seed for seed in range(20) if all(draw(seed) is None for draw in draws)]
    assert [replay(seed) for seed in others[:3]] == [(run(seed, ruled=False), replay(seed)[1]) for seed in others[:3]]


@pytest.mark.parametrize("seeds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_markets_over_real_xml_and_signatures_go_the_same_way(seeds: int) -> None:
    for seed in range(seeds):
        # whose clock is far ahead is not believed at all on the wire; the typed notary leaves that to the parties
        faults = replace(draw_fault_plan(seed, ["res0", "res1", "user0"]), clocks={})
        typed = run_seed(seed, faults=faults)
        wired = run_seed(seed, faults=faults, wired=True)
        assert wired.violation is None
        assert replace(wired) == typed


@pytest.mark.parametrize("seeds", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_lies_over_real_xml_and_signatures_break_nothing(seeds: int) -> None:
    assert [seed for seed in range(seeds) if run(seed, wired=True).violation] == []


def test_an_isolated_party_is_reached_by_nobody() -> None:
    quiet = FaultPlan(heal_after=MINUTE)
    names = ("user0", "user1", "user2")
    cut = replace(quiet, isolations=tuple(FaultWindow(name, 0, MINUTE) for name in names))
    assert run_seed(5, faults=quiet).lost == 0
    assert run_seed(5, faults=cut).lost > 0


def test_plans_cut_lines_only_before_the_healing() -> None:
    plans = [draw_fault_plan(seed, ["res0", "user0"]) for seed in range(100)]
    cuts = [(plan, each) for plan in plans for each in plan.isolations]
    assert len(cuts) > 50
    assert all(0 <= each.since < each.until <= plan.heal_after for plan, each in cuts)


def test_plans_have_everything_that_can_go_wrong() -> None:
    plans = [draw_fault_plan(seed, ["res0", "user0"]) for seed in range(400)]
    blows = Counter(aim.blow for plan in plans for aim in plan.aims)
    assert set(blows) == set(Blow)
    clocks = [clock for plan in plans for clock in plan.clocks.values()]
    assert sum(clock.is_stepped for clock in clocks) > 5
    assert any(abs(clock.offset) > MINUTE for clock in clocks)
    assert any(plan.disks for plan in plans)
    away = {each.name for plan in plans for each in plan.outages if each.until - each.since > MINUTE}
    cut_off = {each.name for plan in plans for each in plan.isolations if each.until - each.since > MINUTE}
    assert {"bank", "directory"} <= away & cut_off
    assert all(each.until <= plan.heal_after for plan in plans for each in plan.outages)
    machines = [faults for plan in plans for faults in plan.machines.values()]
    assert len(machines) > 100
    for badness in ("takes", "delay_mean", "long", "fails", "lost"):
        assert 0 < sum(bool(getattr(each, badness)) for each in machines) < len(machines)
    assert any(plan.strategies for plan in plans)
    apart = [plan for plan in plans if not plan.clocks_agree(5 * MINUTE)]
    assert 0 < len(apart) < len(plans) / 4  # of the others it is also promised that all ends


def test_liars_of_every_habit_lie_beside_the_honest() -> None:
    roles = COMPOSITION.roles(("res0", "res1"), ("user0", "user1"))
    drawn = [draw_liars(seed, roles) for seed in range(400)]
    habits = Counter(habit for liars in drawn for spec in liars.values() for habit in spec.habits)
    assert set(habits) == set(Habit)
    assert all({"res0", "res1"} - set(liars) and {"user0", "user1"} - set(liars) for liars in drawn)


def test_a_full_disk_ends_its_party_and_what_followed_is_not_sent() -> None:
    disk = FaultPlan(
        heal_after=3 * MINUTE, disks=tuple(FaultWindow(name, 0, 3 * MINUTE) for name in ("user0", "user1"))
    )
    quiet, full = FaultPlan(heal_after=3 * MINUTE), disk
    seed = next(seed for seed in range(50) if run_seed(seed, faults=quiet).outcomes.get("committed"))
    report = run_seed(seed, faults=full)
    assert report.violation is None
    assert report.crashes > 5


def test_a_clock_counts_and_is_read_backwards() -> None:
    clock = PartyClock(ClockFault(3 * SECOND, 100, ((MINUTE, HOUR),)), 10**12)
    assert clock.follow(10**12) == 0
    assert clock.time(10**12 + 1_000_000) == 10**12 + 1_000_000 + 3_000_000 + 100
    for reading in range(10**12 + 5_000_000, 10**12 + 5_040_000, 997):
        now = clock.when(reading)
        assert clock.time(now - 1) < reading <= clock.time(now)
    before = clock.time(10**12 + MINUTE)
    assert clock.follow(10**12 + MINUTE) == HOUR
    assert clock.time(10**12 + MINUTE) == before + HOUR
    assert clock.follow(10**12 + MINUTE) == 0


@pytest.mark.swarm
def test_many_seeds() -> None:
    assert [seed for seed in range(1000, 6000) if run(seed).violation is not None] == []


@pytest.mark.parametrize("seed", range(8))
def test_amendments_under_faults(seed: int) -> None:
    report = run(seed, resized=True)
    assert report.violation is None, f"seed {seed}: {report.checker}: {report.violation}"


def test_some_seeds_draw_them_and_the_others_go_as_ever() -> None:
    drawn = [seed for seed in range(200) if draw_changes(seed, resized=None) is not None]
    assert 40 < len(drawn) < 100
    without = next(seed for seed in range(200) if seed not in drawn)
    assert run(without) == run(without, resized=False)
