"""Figure 12: 1 to 30 users who ask at the same moment, one unit each.

Each number of users and each repetition is a market of its own, because the paper measures a platform at rest. The
response time is that from the calls' sending until one resource's answer has been read, its mean over all answers; the
round duration is that until the last answer. The paper finds both growing with the users and cannot tell why the second
tails off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ramp.model.instant import MINUTE, SECOND
from ramp.protocol.events import AuctionOptions
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.comparison import Comparison
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.market.frame import (
    drawn_ages,
    market_study,
    mean_and_deviation,
    mode_of,
    repetitions_of,
    stand_in_note,
    straight_line,
)
from simulation.experiments.result import Column, Columns
from simulation.experiments.study import RUNS, Found, Row, Rows, Run, Shown
from simulation.experiments.trials.plan import (
    Links,
    MarketPlan,
    MarketResult,
    Mode,
    Submission,
    UnitWish,
    table2_resources,
)
from simulation.plots.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USERS: Final = {
    Mode.SIMULATED: tuple(range(1, 31)),
    Mode.XMPP: (1, 2, 5, 10, 15, 20, 25, 30),
}
QUICK_USERS: Final = (1, 5, 10, 30)
REPETITIONS: Final = 3
WISH: Final = UnitWish(price=70, cores=16, lead=5 * MINUTE)
OPTIONS: Final = AuctionOptions(rounds=1, round_time=5 * MINUTE)
KNEE_USERS: Final = 10
"""Number of users up to which the paper's round duration rises sharply; then it tails off."""

BEGIN: Final = 1 * SECOND
PICTURE: Final = "figure12.png"
LINEAR: Final = 0.95
"""Coefficient of determination from which points lie on a line."""

TAIL: Final = 0.5
"""Slope beyond the knee over that before it, up to which a curve tails off."""

RESPONSE_COLUMNS: Final[Columns] = {
    "response_s": Column("s", "from a call until one resource's answer has been read, mean over all answers"),
    "response_s_sd": Column("s", "its standard deviation over all answers"),
    "longest_round_s": Column("s", "round of the slowest user"),
    "purchase_s": Column("s", "from the submission to the end of the purchase, mean"),
}


def cases(run: Run) -> Sequence[MarketPlan]:
    """The markets of a run."""
    users = run.either(USERS[mode_of(run)], QUICK_USERS)
    return plans_of(run.seed, repetitions_of(run, REPETITIONS), users, table2_resources())


def plans_of(
    seed: int,
    repetitions: int,
    users: Sequence[int],
    resources: Sequence[ResourceConfig],
    links: Links | None = None,
) -> list[MarketPlan]:
    """Return markets in which all users ask at once, by number of users and repetition.

    The seed draws the machines' ages.
    """
    return [
        MarketPlan(
            f"{count} users, repetition {number}",
            tuple(resources),
            count,
            tuple(Submission(f"by-user{user}", f"user{user}", BEGIN, (WISH,), OPTIONS) for user in range(1, count + 1)),
            age=age,
            seed=seed + number - 1,
            links=links,
        )
        for count in users
        for number, age in enumerate(drawn_ages(seed, repetitions), 1)
    ]


def response_row(result: MarketResult) -> dict[str, Any]:
    """Response times and round durations of one market in which all users asked at once."""
    row = _responses([result], result.plan.users)
    purchases = [each.outcome.duration / SECOND for each in result.auctions]
    del row["of"]
    cpu, foreign = row.pop("cpu_ms_per_auction"), row.pop("foreign_cores")
    purchase = mean_and_deviation(purchases, 5)[0]
    return {**row, "purchase_s": purchase, "cpu_ms_per_auction": cpu, "foreign_cores": foreign}


def response_table(results: Sequence[MarketResult]) -> list[dict[str, Any]]:
    """Means over the repetitions by number of users; deviations over all answers and rounds."""
    return [
        _responses([result for result in results if result.plan.users == users], users)
        for users in sorted({result.plan.users for result in results})
    ]


def _responses(results: Sequence[MarketResult], users: int) -> dict[str, Any]:
    auctions = [auction for result in results for auction in result.auctions]
    responses = [duration / SECOND for each in auctions for rnd in each.answered for _, duration in rnd]
    rounds = [duration / SECOND for each in auctions for duration in each.round_durations]
    cpu_ms = [1000 * result.cpu_s / len(result.auctions) for result in results]
    response, response_sd = mean_and_deviation(responses, 5)
    round_s, round_sd = mean_and_deviation(rounds, 5)
    return {
        "users": users,
        "sold": sum(each.sold for each in auctions),
        "of": len(auctions),
        "response_s": response,
        "response_s_sd": response_sd,
        "round_s": round_s,
        "round_s_sd": round_sd,
        "longest_round_s": round(max(rounds), 5),
        "cpu_ms_per_auction": mean_and_deviation(cpu_ms, 3)[0],
        "foreign_cores": mean_and_deviation([result.foreign_cores for result in results], 2)[0],
    }


def comparisons_of(table: Rows, mode: Mode, picture: str) -> list[Comparison]:
    """What the paper says of figures 12 and 13 beside the table."""
    slope, _, fit = straight_line([(row["users"], row["response_s"]) for row in table])
    round_slope, _, _ = straight_line([(row["users"], row["round_s"]) for row in table])
    last = table[-1]
    few = [(row["users"], row["round_s"]) for row in table if row["users"] <= KNEE_USERS]
    many = [(row["users"], row["round_s"]) for row in table if row["users"] >= KNEE_USERS]
    drawn = "the paper draws it without numbers"
    modelled = "in virtual time service times are fixed, so a line follows from the model and confirms nothing"
    knee = []
    if min(len(few), len(many)) > 1:
        what = f"round duration for one more user, from {KNEE_USERS} users on over up to {KNEE_USERS}"
        knee = [
            Comparison(
                what, "steep, then tails off", straight_line(many)[0] / straight_line(few)[0], "times", at_most=TAIL,
                why="every user's calls are work for the same cores; the paper cannot tell why its own tails off",
                picture=picture,
            )
        ]  # fmt: skip
    return [
        Comparison(
            "response time over users: R² of a line", "linear", fit, "",
            at_least=None if mode is Mode.SIMULATED else LINEAR, picture=picture,
            why=modelled if mode is Mode.SIMULATED else "other work on this machine scatters the answers",
        ),
        Comparison("response time, one more user", "not told", 1000 * slope, "ms", why=drawn, picture=picture),
        Comparison("round duration, one more user", "not told", 1000 * round_slope, "ms", why=drawn, picture=picture),
        *knee,
        Comparison(
            f"round duration with {last['users']} users, of the paper's limit of 5 min", "well below",
            100 * last["round_s"] / 300, "%", why="a limit that no round of ours comes near decides nothing",
            picture=picture,
        ),
    ]  # fmt: skip


_SAID: Final[Mapping[str, str]] = {
    "response_s": "(a) response time; paper: linear",
    "round_s": "(b) round duration; paper: steep up to 10 users, then tails off",
}

RESPONSES: Final[Mapping[str, Any]] = {
    "x": Axis("users", "simultaneous users"),
    "y": (
        Axis("response_s", "response time of a resource (ms)", 1000),
        Axis("round_s", "duration of the round (ms)", 1000),
    ),
    "spread": "_sd",
    "title": lambda panel: _SAID[panel[0]],
}
"""What the curves of figures 12 and 13 have in common."""


def responses_note(found: Found) -> str:
    """Small print below figures 12 and 13."""
    return f"Bars: standard deviation. The paper's curves are not told in numbers. {stand_in_note(found)}"


def _slowest(axes: Axes, _: Found, panel: tuple[Any, ...], rows: Sequence[Row]) -> None:
    if panel == ("round_s",):
        longest = [1000 * row["longest_round_s"] for row in rows]
        users = [row["users"] for row in rows]
        axes.plot(users, longest, ":", marker="x", markersize=4, color=GREY, label="slowest user")


SHOWN: Final = "users sold response_s round_s longest_round_s cpu_ms_per_auction foreign_cores"

EXPERIMENTS: Final = (
    market_study(
        name="users",
        about="1 to 30 simultaneous users: response time and round duration (RAMP, figure 12)",
        cases=cases,
        tables={
            "markets": lambda found: [response_row(result) for result in found.answers[RUNS]],
            "figure12": lambda found: response_table(found.answers[RUNS]),
        },
        columns=RESPONSE_COLUMNS,
        figures={
            PICTURE: Figure(
                title="Figure 12 of Zasada and Coveney: simultaneous users, twenty resources on one host",
                size=(11, 5),
                draw=Curves(
                    table="figure12",
                    style=lambda line, number: {"marker": "o", "label": "mean over the users"},
                    finish=_slowest,
                    **RESPONSES,
                ),
                note=responses_note,
            )
        },
        comparisons=lambda found: comparisons_of(found["figure12"], mode_of(found.run), PICTURE),
        shown=(Shown("figure12", SHOWN),),
        parameters=lambda found: {
            "users": [row["users"] for row in found["figure12"]],
            "repetitions": repetitions_of(found.run, REPETITIONS),
            "rounds": 1,
            "request": "16 cores for an hour, starting in 5 minutes, at most 70 credits per core hour",
        },
    ),
)
