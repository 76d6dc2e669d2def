"""What the 2005 Blue Gene/L study says in numbers and words, as rows with verdicts.

Y. Aridor and others, IBM J. Res. & Dev. 49(2/3), 2005, "Simulation results" and figures 7 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from simulation.experiments.bluegene.runs import LOGS, MULTI_TOROIDAL, PAPER_FULL_LOAD, PLAIN, SLIM_CASES
from simulation.experiments.comparison import Comparison
from simulation.experiments.result import Rows

TOLERANCE_POINTS: Final = 4.0
"""Points within which a printed utilisation counts as reproduced; the study's two machines are 24 and 10 apart."""

TOGETHER_POINTS: Final = 3.0
"""Points up to which curves lie together: under a third of the 10 by which the study's machines differ with SDSC."""

PAPER_LOSS: Final = 40.0
"""Loss of utilisation at most from slim to fat shapes of equal sizes; we read it as points (see `loss_in_points`)."""

_FIGURE7: Final = "figure7.png"
_FIGURE8: Final = "figure8.png"
_OLDER_LOGS: Final = "the study's logs are older, uncleaned versions, and it tells its scheduler in one sentence"
_SLIM: Final = (
    "large slim tori take whole lines, so that few run side by side; they weigh more in some spans of the logs"
)


def statements(rows7: Rows, rows8: Rows) -> list[Comparison]:
    """All that the study says of its figures 7 and 8, beside ours."""
    return [*_headlines(rows7), *_slim(rows7), *_meshes(rows7), *_order(rows7), *_losses(rows8)]


def percent(rows: Rows, **wanted: object) -> dict[float, float]:
    """Utilisation in per cent by load of the rows with the wanted values."""
    chosen = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return {row["load"]: 100 * row["utilisation"] for row in chosen}


def largest_gap(curves: Sequence[Mapping[float, float]]) -> float:
    """Largest difference between any two curves at one load."""
    return max(max(curve[load] for curve in curves) - min(curve[load] for curve in curves) for load in curves[0])


def headline(log: str, machine: str, ours: float) -> Comparison:
    """Compare one of the utilisations that the study prints with ours, in per cent."""
    apart = PAPER_FULL_LOAD[log, MULTI_TOROIDAL] - PAPER_FULL_LOAD[log, PLAIN]
    return Comparison(
        f"{log}: utilisation, fat tori at full load, {machine}", PAPER_FULL_LOAD[log, machine], ours, "%",
        TOLERANCE_POINTS, effect=apart, why=_OLDER_LOGS, picture=_FIGURE7,
    )  # fmt: skip


def slim_gap(log: str, words: str, points: float) -> Comparison:
    """Compare the largest gap between slim curves, in points."""
    paper = "almost identical" if log == "CTC" else "very small variation"
    what = f"{log}: slim jobs, {words} apart at most"
    return Comparison(what, paper, points, "points", at_most=TOGETHER_POINTS, why=_SLIM, picture=_FIGURE7)


def loss_in_points(points: float) -> Comparison:
    """Compare figure 8's largest loss, read as points of utilisation, the unit of its axis."""
    what = "loss from slim to fat at equal sizes, in points (as read)"
    return Comparison(
        what, PAPER_LOSS, points, "points", TOLERANCE_POINTS,
        why="the share of large jobs is not that of the jobs the study took",
        picture=_FIGURE8,
    )  # fmt: skip


def _headlines(rows: Rows) -> list[Comparison]:
    """Fat jobs, all tori, at full load: the numbers that the paper prints, and the ratio of the machines."""
    ours = {
        case: percent(rows, log=case[0], machine=case[1], fat_probability=1.0, torus_probability=1.0)[1.0]
        for case in PAPER_FULL_LOAD
    }
    result = [headline(log, machine, ours[log, machine]) for log, machine in PAPER_FULL_LOAD]
    for log in LOGS:
        ratio = PAPER_FULL_LOAD[log, MULTI_TOROIDAL] / PAPER_FULL_LOAD[log, PLAIN]
        what = f"{log}: the same, {MULTI_TOROIDAL} over {PLAIN}"
        found = ours[log, MULTI_TOROIDAL] / ours[log, PLAIN]
        # half of what the better machine gains
        half = round((ratio - 1) / 2, 2)
        result.append(
            Comparison(what, round(ratio, 2), found, "times", half, effect=ratio - 1, why=_OLDER_LOGS, picture=_FIGURE7)
        )
    return result


def _slim(rows: Rows) -> list[Comparison]:
    result = []
    for log in LOGS:
        curves = [
            percent(rows, log=log, machine=machine, fat_probability=0.0, torus_probability=torus)
            for machine, torus in SLIM_CASES
        ]
        result.append(slim_gap(log, "four curves", largest_gap(curves)))
        result.append(slim_gap(log, "machines, all tori,", largest_gap(curves[-2:])))
    return result


def _meshes(rows: Rows) -> list[Comparison]:
    result = []
    for log in LOGS:
        gap = max(
            largest_gap(
                [
                    percent(rows, log=log, machine=machine, fat_probability=fat, torus_probability=0.0)
                    for machine in (MULTI_TOROIDAL, PLAIN)
                ]
            )
            for fat in (0.0, 1.0)
        )
        what = f"{log}: meshes, machines apart at most"
        result.append(
            Comparison(what, "very similar", gap, "points", at_most=TOGETHER_POINTS, why=_SLIM, picture=_FIGURE7)
        )
    return result


def _order(rows: Rows) -> list[Comparison]:
    """Two sentences on figure 7(b): more tori, less utilisation; SDSC somewhat below CTC."""
    curves = {
        (log, torus): percent(rows, log=log, machine=MULTI_TOROIDAL, fat_probability=1.0, torus_probability=torus)[1.0]
        for log in LOGS
        for torus in (0.0, 0.5, 1.0)
    }
    result = []
    for log in LOGS:
        least = min(curves[log, 0.0] - curves[log, 0.5], curves[log, 0.5] - curves[log, 1.0])
        what = f"{log}: fat jobs, utilisation lost by half as many tori more, at least"
        result.append(
            Comparison(
                what,
                "decreases",
                least,
                "points",
                at_least=TOGETHER_POINTS,
                why="links are hardly short here",
                picture=_FIGURE7,
            )
        )
    below = sum(curves["CTC", torus] - curves["SDSC", torus] for torus in (0.0, 0.5, 1.0)) / 3
    what = "fat jobs on Blue Gene/L at full load, SDSC below CTC, mean of three curves"
    result.append(
        Comparison(
            what,
            "somewhat lower",
            below,
            "points",
            at_least=0.5,
            why="with all tori the two are together here",
            picture=_FIGURE7,
        )
    )
    return result


def _losses(rows: Rows) -> list[Comparison]:
    points, relative, order = [], [], []
    for log in LOGS:
        slim, mixed, fat = (percent(rows, log=log, fat_probability=share) for share in (0.0, 0.5, 1.0))
        points.append(max(slim[load] - fat[load] for load in slim))
        relative.append(max(100 * (1 - fat[load] / slim[load]) for load in slim))
        order.append(min(slim[1.0] - mixed[1.0], mixed[1.0] - fat[1.0]))
    read_otherwise = "the study does not say of what its per cent are; read as points, the unit of its axis, it fits"
    return [
        loss_in_points(max(points)),
        Comparison(
            "the same, relative to slim (the other reading)", PAPER_LOSS, max(relative), "%", TOLERANCE_POINTS,
            why=read_otherwise, picture=_FIGURE8,
        ),
        Comparison(
            "slim, half of them fat, fat: least step at full load", "the fatter, the worse", min(order), "points",
            at_least=TOGETHER_POINTS, why="shapes hardly matter at this load", picture=_FIGURE8,
        ),
    ]  # fmt: skip
