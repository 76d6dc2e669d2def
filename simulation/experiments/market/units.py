"""Figure 11b: 1 to 25 units in one request, with random deadlines and prices.

Each repetition is a market in which requests of more and more units follow one another, with one round of bidding and,
as in the paper, five minutes for it, which no round ever needs. Measured are the round until the last answer, the time
to commit (directory, voting, confirmation, payment) and the whole purchase. The paper finds the round linear in the
number of units and the negotiation nearly constant, as its own contacts no bank and signs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ramp.model.instant import MINUTE, SECOND, Duration
from ramp.protocol.events import AuctionOptions
from simulation.experiments.comparison import Comparison
from simulation.experiments.figures import Figure
from simulation.experiments.market.frame import (
    drawn_ages,
    first_plan,
    market_study,
    mean_and_deviation,
    mode_of,
    repetitions_of,
    stand_in_note,
    straight_line,
)
from simulation.experiments.result import Column, Columns
from simulation.experiments.study import RUNS, Found, Rows, Run, Shown
from simulation.experiments.trials.plan import MarketPlan, Mode, Submission, UnitWish, table2_resources
from simulation.market.random_streams import stream
from simulation.plots.style import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MOST_UNITS: Final = 25
QUICK_UNITS: Final = (1, 5, 10, 15, 20, 25)
REPETITIONS: Final = {Mode.SIMULATED: 100, Mode.XMPP: 5}
"""The paper's hundred; over XMPP, where a repetition takes a minute, fewer."""

QUICK_REPETITIONS: Final = {Mode.SIMULATED: 3, Mode.XMPP: 1}
ROUND_TIME: Final = 5 * MINUTE
CORES: Final = 16
LOWEST_PRICE: Final = 50
HIGHEST_PRICE: Final = 90
"""Credits per core hour; all of these are above what some machine wants."""

SLACK_MINUTES: Final = 240
"""The deadline is up to so much later than the run needs."""

CONSTANT_PERCENT: Final = 10.0
"""Growth of the commitment from one unit to the most, in per cent, up to which it does not increase."""

CONSTANT_UNIT_PERCENT: Final = 1.0
"""The same of one more unit, in per cent of the commitment of one."""

_COLUMNS: Final[Columns] = {
    "units": Column("units", "in one request"),
    **{
        f"{name}{suffix}": Column("s", meaning + words)
        for name, meaning in (
            ("commitment_s", "directory, votes, confirmations and payments"),
            ("total_s", "the whole purchase"),
        )
        for suffix, words in (("", ""), ("_sd", ": standard deviation"))
    },
}


def cases(run: Run) -> Sequence[MarketPlan]:
    """The markets of a run."""
    mode = mode_of(run)
    repetitions = repetitions_of(run, REPETITIONS[mode], QUICK_REPETITIONS[mode])
    return plans_of(run.seed, repetitions, run.either(tuple(range(1, MOST_UNITS + 1)), QUICK_UNITS))


def plans_of(seed: int, repetitions: int, sizes: Sequence[int]) -> list[MarketPlan]:
    """Return the markets of the study, one a repetition; the seed draws the units and the machines' ages."""
    resources = table2_resources()
    plans = []
    for number, age in enumerate(drawn_ages(seed, repetitions), 1):
        random = stream(seed, f"units/{number}")
        submissions, at = [], SECOND
        for size in sizes:
            wishes = tuple(
                UnitWish(
                    random.randint(LOWEST_PRICE, HIGHEST_PRICE),
                    CORES,
                    random.randint(5, 60) * MINUTE,
                    slack=random.randint(0, SLACK_MINUTES) * MINUTE,
                )
                for _ in range(size)
            )
            options = AuctionOptions(rounds=1, round_time=ROUND_TIME)
            submissions.append(Submission(f"units-{size}", "user1", at, wishes, options))
            at += pause_after(size)
        plans.append(MarketPlan(f"repetition {number}", resources, 1, tuple(submissions), age=age, seed=seed))
    return plans


def pause_after(size: int) -> Duration:
    """From a request's submission to the next one's: several times what it takes on two idle cores."""
    return (1 + size // 10) * SECOND


def _rows(found: Found) -> Rows:
    return [
        {
            "repetition": repetition,
            "units": len(auction.submission.wishes),
            "status": str(auction.outcome.status),
            "round_s": round(auction.round_durations[0] / SECOND, 5),
            "commitment_s": round(auction.negotiation / SECOND, 5),
            "total_s": round(auction.outcome.duration / SECOND, 5),
        }
        for repetition, result in enumerate(found.answers[RUNS], 1)
        for auction in result.auctions
        if auction.round_durations
    ]


def _table(found: Found) -> Rows:
    table = []
    for units in sorted({row["units"] for row in found["auctions"]}):
        chosen = [row for row in found["auctions"] if (row["units"], row["status"]) == (units, "committed")]
        entry = {"units": units, "sold": len(chosen)}
        for column in ("round_s", "commitment_s", "total_s"):
            entry[column], entry[f"{column}_sd"] = mean_and_deviation([row[column] for row in chosen])
        table.append(entry)
    return table


def _comparisons(found: Found) -> Sequence[Comparison]:
    table, mode = found["figure11b"], mode_of(found.run)
    slope, _, fit = straight_line([(row["units"], row["round_s"]) for row in table])
    commit_slope, _, _ = straight_line([(row["units"], row["commitment_s"]) for row in table])
    total_slope, _, _ = straight_line([(row["units"], row["total_s"]) for row in table])
    one, most = table[0], table[-1]
    modelled = "in virtual time a unit costs fixed service times, so a line follows from the model and confirms nothing"
    signed = (
        "ours signs an agreement and pays through the bank for every unit; the paper's contacts no bank, signs nothing"
    )
    picture = "figure11b.png"
    return [
        Comparison(
            "round duration over units: R² of a line", "linear", fit, "",
            at_least=None if mode is Mode.SIMULATED else 0.95, picture=picture,
            why=modelled if mode is Mode.SIMULATED else "other work on this machine scatters the rounds",
        ),
        Comparison(
            "round duration for one more unit", "not told", 1000 * slope, "ms", picture=picture,
            why="the paper draws it without numbers",
        ),
        Comparison(
            f"commitment with {most['units']} units over that with {one['units']}, less 1",
            "does not increase", 100 * (most["commitment_s"] / one["commitment_s"] - 1), "%", at_most=CONSTANT_PERCENT,
            why=signed, picture=picture,
        ),
        Comparison(
            "commitment for one more unit", "none", 1000 * commit_slope, "ms",
            at_most=round(CONSTANT_UNIT_PERCENT / 100 * 1000 * one["commitment_s"], 3), why=signed, picture=picture,
        ),
        Comparison(
            "whole purchase for one more unit", "a couple of seconds", total_slope, "s", picture=picture,
            why="the paper's rounds take their time whatever the units; ours close with the last answer",
        ),
    ]  # fmt: skip


def _figure11b(drawing: Drawing, found: Found) -> Iterable[Axes]:
    rows = found["figure11b"]
    axes = drawing.subplots()
    for column, label, colour, marker in (
        ("total_s", "whole purchase", ORANGE, "^"),
        ("commitment_s", "commitment (votes, confirmations, payments)", GREEN, "s"),
        ("round_s", "round of bidding, until the last answer", BLUE, "o"),
    ):
        units, means, deviations = ([row[name] for row in rows] for name in ("units", column, f"{column}_sd"))
        axes.errorbar(units, means, deviations, color=colour, marker=marker, markersize=4, capsize=2, label=label)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("units in one request")
    axes.set_ylabel("time (s), mean and standard deviation")
    axes.set_title("paper: the round grows linearly, the negotiation does not; its numbers are not told", fontsize=9)
    return [axes]


EXPERIMENTS: Final = (
    market_study(
        name="units",
        about="1 to 25 units in one request: round duration and commitment (RAMP, figure 11b)",
        cases=cases,
        tables={"auctions": _rows, "figure11b": _table},
        columns=_COLUMNS,
        figures={
            "figure11b.png": Figure(
                title="Figure 11b of Zasada and Coveney: units in one request, twenty resources on one host",
                size=(9, 5.2),
                draw=_figure11b,
                note=stand_in_note,
            )
        },
        comparisons=_comparisons,
        shown=(Shown("figure11b", "units sold round_s commitment_s total_s"),),
        parameters=lambda found: {
            "units": sorted({len(one.wishes) for one in first_plan(found).submissions}),
            "repetitions": len(found.cases[RUNS]),
            "rounds": 1,
            "unit": f"{CORES} cores for an hour; price {LOWEST_PRICE} to {HIGHEST_PRICE} credits, start in 5 to 60 "
            f"minutes, deadline up to {SLACK_MINUTES} minutes later than the run needs, all drawn",
        },
    ),
)
