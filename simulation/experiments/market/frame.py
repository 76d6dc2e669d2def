"""What all studies of markets share: their columns, how plans are run, what their summaries say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ramp.model.instant import HOUR, MINUTE, SECOND, Duration
from simulation.experiments.measuring import Progress, in_processes
from simulation.experiments.result import Column, Columns
from simulation.experiments.study import Found, Run, Study
from simulation.experiments.trials.own_market import OPTIONS, OwnMarket
from simulation.experiments.trials.plan import (
    STAND_IN,
    STAND_IN_NOTE,
    MarketPlan,
    MarketResult,
    Mode,
    stand_ins,
    workload_of,
)
from simulation.experiments.trials.simulated import run_simulated
from simulation.market.random_streams import stream

if TYPE_CHECKING:
    from simulation.experiments.market.trading import Tally

OLDEST_HOURS: Final = 72
"""Machines have been running for up to so long when a market opens; the paper's left theirs running between tests."""

TIMING_NOTES: Final = {
    Mode.SIMULATED: "virtual time: messages and bids take the mean service times of trials.simulated.Costs",
    Mode.XMPP: "wall time on one machine; what else ran on it makes every time an upper bound",
}


def drawn_ages(seed: int, count: int) -> list[Duration]:
    """How long the machines of each repetition have been running, in whole minutes."""
    random = stream(seed, "ages")
    return [random.randrange(OLDEST_HOURS * HOUR // MINUTE) * MINUTE for _ in range(count)]


def market_parameters(mode: str, plans: Sequence[MarketPlan]) -> dict[str, Any]:
    """Parameters that every market experiment states."""
    first = plans[0]
    return {
        "mode": str(mode),
        "times": TIMING_NOTES[Mode(mode)],
        "resources": [each.name for each in first.resources[:20]],
        "number_of_resources": max(len(plan.resources) for plan in plans),
        "stand_ins": [each.name for each in first.resources[:20] if workload_of(each) == STAND_IN],
        "prices": "Table 2; strategy ramp (exact quotient, 4 rounds expected)",
        "ages_hours": [round(plan.age / HOUR, 3) for plan in plans[:10]],
        "spacing_s": [
            (later.at - earlier.at) / SECOND
            for earlier, later in zip(first.submissions, first.submissions[1:2], strict=False)
        ],
    }


def mean_and_deviation(values: Sequence[float], digits: int = 4) -> tuple[float, float]:
    """Mean and standard deviation, rounded; zeros for no values."""
    if not values:
        return 0.0, 0.0
    return round(fmean(values), digits), round(pstdev(values), digits)


def straight_line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Slope, intercept and coefficient of determination of the least-squares line."""
    x, y = np.array(points, dtype=float).T
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(((y - slope * x - intercept) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    return float(slope), float(intercept), 1 - residual / total if total else 1.0


MARKET_COLUMNS: Final[Columns] = {
    "repetition": Column("", "number of the market; each opens with machines of another age"),
    "users": Column("users", "who ask at the same moment"),
    "resources": Column("resources", "in the market"),
    "resource": Column("", "name of the seller"),
    "workload": Column("", "real log, stand-in (synthetic in place of a missing log) or generated"),
    "cores": Column("cores", "asked for"),
    "start_in_min": Column("min", "from the submission to the start asked for"),
    "status": Column("", "how the request ended; committed: bought, quoted: nothing was to be bought"),
    "winner": Column("", "resource that sold it; empty: nobody"),
    "winners": Column("", "resources that sold it in any repetition"),
    "sold": Column("requests", "that were bought, or quoted where that was all that was wanted"),
    "of": Column("requests", "that were made"),
    "round_s": Column("s", "from the calls until the last answer, mean"),
    "round_s_sd": Column("s", "its standard deviation"),
    "duration_s": Column("s", "from the submission to the end of the purchase"),
    "cpu_ms_per_auction": Column("ms", "CPU time of all processes over auctions"),
    "foreign_cores": Column("cores", "that others on this machine kept busy meanwhile; 0 in virtual time"),
}
"""Of columns that mean the same in all experiments on markets."""


def perform(
    study: Study, run: Run, cases: Sequence[MarketPlan], processes: int | None, on_progress: Progress | None
) -> Sequence[MarketResult]:
    """Run plans in virtual time, or over XMPP; see `simulation.experiments.measuring.Perform`.

    Raises:
        TransportError: a market over XMPP does not come up, or an agent ends in the middle.
    """
    if mode_of(run) is Mode.SIMULATED:
        return in_processes(study, run, cases, processes, on_progress)
    from simulation.experiments.trials.xmpp import run_over_xmpp  # which would slow every other command down

    return over_xmpp(cases, on_progress, run_over_xmpp)


def over_xmpp(
    cases: Sequence[MarketPlan],
    on_progress: Progress | None,
    run_them: Callable[[Mapping[int, MarketPlan], Tally], None],
) -> Sequence[MarketResult]:
    """Run plans one after another, to have the machine to themselves, in as few launched markets as possible.

    Args:
        cases: the plans.
        on_progress: told how many of the requests have ended.
        run_them: runs plans by number in one market, and puts their results into the tally.
    """
    from simulation.experiments.market.trading import Tally, sharing

    tally = Tally(sum(len(plan.submissions) for plan in cases), on_progress)
    tally.begun()
    for numbers in sharing(cases):
        run_them({number: cases[number] for number in numbers}, tally)
    return [tally.results[number] for number in range(len(cases))]


def mode_of(run: Run) -> Mode:
    """How plans are run."""
    return Mode(run["mode"])


def repetitions_of(run: Run, whole: int, quick: int = 1) -> int:
    """How many repetitions: those wanted, else the study's."""
    return run["repeat"] or run.either(whole, quick)


def own_market(run: Run) -> OwnMarket:
    """What is run instead of the paper's market."""
    return OwnMarket(**{name: run[name] for name in OPTIONS})


def first_plan(found: Found) -> MarketPlan:
    """The first of a study's plans."""
    plan: MarketPlan = next(plan for plans in found.cases.values() for plan in plans)
    return plan


def stand_in_note(found: Found) -> str:
    """What pictures say of workloads; empty where all are real."""
    stand_in = stand_ins(first_plan(found).resources)
    return f"{stand_in}: synthetic workloads in place of logs that are not on this machine." if stand_in else ""


def market_study(
    *,
    columns: Columns,
    parameters: Callable[[Found], Mapping[str, Any]] = lambda _: {},
    options: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    **declared: Any,
) -> Study:
    """Declare a study whose cases are market plans, with what all of them have in common."""

    def all_parameters(found: Found) -> Mapping[str, Any]:
        plans = [plan for of_part in found.cases.values() for plan in of_part]
        return {**market_parameters(found.run["mode"], plans), **parameters(found)}

    return Study(
        measure=run_simulated,
        perform=perform,
        columns={**MARKET_COLUMNS, **columns},
        parameters=all_parameters,
        notes=(*notes, STAND_IN_NOTE),
        stand_ins=lambda found: stand_ins(first_plan(found).resources),
        options={"mode": Mode.SIMULATED, "repeat": None, **(options or {})},
        **declared,
    )
