"""Tables of the Angara allocation study: means over systems and seeds, gains, and the paper's headlines beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from simulation.experiments.angara.runs import BASES, FIND_SYSTEMS, MSS
from simulation.experiments.comparison import Comparison
from simulation.experiments.means import confidence_interval
from simulation.experiments.result import Column, Columns, Row, Rows, grouped

MEASURES: Final = ("utilisation", "relative_wait")
UTILISATION_GAIN: Final = 7.0
WAIT_GAIN: Final = -36.6
"""Of mss over base, per cent, as the study prints them."""
PHI_UTILISATION_GAIN: Final = 0.5
PHI_WAIT_GAIN: Final = -2.0
"""Of mss over find-systems."""

MEASURE_COLUMNS: Final[Columns] = {
    "measure": Column("", "utilisation in per cent, or mean relative wait (wait / run time)"),
    "mean": Column("as `measure` says", "over the systems and seeds"),
    "ci95_half_width": Column("as `measure` says", "half of the 95 % interval of the mean over the seeds"),
    "standard_deviation": Column("as `measure` says", "over the seeds"),
    "seeds": Column("", "how many seeds the mean is over"),
    "utilisation_percent": Column("%", "mean utilisation"),
    **{
        f"{name}{suffix}": Column(unit, meaning + words)
        for name, unit, meaning in (
            ("utilisation_points", "points", "utilisation, the method less the other"),
            ("utilisation_relative_percent", "%", "the same relative to the other"),
            ("wait_of_means_percent", "%", "relative wait: ratio of the means over everything, less 1"),
            ("wait_mean_over_windows_percent", "%", "relative wait: mean over the windows of the ratios, less 1"),
        )
        for suffix, words in (("", ""), ("_ci", "; half of its 95 % interval over the seeds"))
    },
}


def means_by_seed(rows: Rows, measure: str) -> dict[int, float]:
    """Mean over all other columns, by seed."""
    found: dict[int, list[float]] = {}
    for row in rows:
        found.setdefault(row["seed"], []).append(row[measure])
    return {seed: fmean(values) for seed, values in found.items()}


def mean_table(rows: Rows, measures: Sequence[str], *by: str) -> Rows:
    """Means of the rows that agree in some columns, with their intervals over the seeds, measure by measure."""
    table = []
    for measure in measures:
        scale = 100 if measure == "utilisation" else 1
        for group, mine in grouped(rows, *by).items():
            found = confidence_interval([scale * value for value in means_by_seed(mine, measure).values()])
            table.append(
                {
                    "measure": measure,
                    **dict(zip(by, group, strict=True)),
                    "mean": round(found.mean, 4),
                    "ci95_half_width": round(found.half_width, 4),
                    "standard_deviation": round(found.deviation, 4),
                    "seeds": found.count,
                }
            )
    return table


def differences(rows: Rows, *better: str) -> Rows:
    """How much each of the `better` methods gains on every other one, by load, over all systems and windows.

    Paired by seed: utilisation in points and relative; relative wait as the ratio of the means over everything, and as
    the mean over the windows of the ratios of the means over the systems (what figure 6 shows).
    """
    table = []
    for (load,), group in grouped(rows, "load").items():
        labels = list(dict.fromkeys(row["method"] for row in group))
        table += [
            {"load": load, "method": one, "against": other, **gain(group, one, other)}
            for one in better
            if one in labels
            for other in labels
            if other != one
        ]
    return table


def gain(rows: Rows, one: str, other: str) -> dict[str, float]:
    """What one method gains on another on the same workloads: means over seeds, `_ci` half a 95 % interval."""
    columns: dict[str, list[float]] = {}
    for of_seed in grouped(rows, "seed").values():
        mine, theirs = ({_key(row): row for row in of_seed if row["method"] == name} for name in (one, other))
        common = sorted(mine.keys() & theirs.keys())
        use, base_use = (fmean(each[key]["utilisation"] for key in common) for each in (mine, theirs))
        wait, base_wait = (fmean(each[key]["relative_wait"] for key in common) for each in (mine, theirs))
        ratios = []
        for window in sorted({window for _, window in common}):
            keys = [key for key in common if key[1] == window]
            waits = sum(theirs[key]["relative_wait"] for key in keys)
            if waits:
                ratios.append(sum(mine[key]["relative_wait"] for key in keys) / waits)
        for name, value in (
            ("utilisation_points", 100 * (use - base_use)),
            ("utilisation_relative_percent", 100 * (use / base_use - 1)),
            ("wait_of_means_percent", 100 * (wait / base_wait - 1)),
            ("wait_mean_over_windows_percent", 100 * (fmean(ratios) - 1) if ratios else 0.0),
        ):
            columns.setdefault(name, []).append(value)
    result = {}
    for name, values in columns.items():
        found = confidence_interval(values)
        result[name] = round(found.mean, 3)
        result[f"{name}_ci"] = round(found.half_width, 3)
    return result


def comparisons(rows: Rows) -> list[Comparison]:
    """Compare the study's headlines with ours, for each reading of base and both statistics of waits."""
    mss, plain = MSS.label, FIND_SYSTEMS.label
    bases = [one.label for one in BASES]
    result = [row for base in bases for row in gains_over(base, rows)]
    result += _gains(gain(rows, mss, plain), f"mss over {plain}", PHI_UTILISATION_GAIN, PHI_WAIT_GAIN, _WHY_PHI)
    windows = sorted({row["window"] for row in rows})
    for method in (*bases, plain, mss):
        result += _over_windows(rows, method, windows)
    return result


def gains_over(base: str, rows: Rows) -> list[Comparison]:
    """The study's headline for one reading of base: utilisation, wait by the means, wait over the windows."""
    return _gains(gain(rows, MSS.label, base), f"mss over {base}", UTILISATION_GAIN, WAIT_GAIN, _WHY_BASE)


_WHY_BASE: Final = (
    "what base may choose, the sizes' shares and the load are not printed, and the gap depends on all three"
)
_WHY_PHI: Final = "phi's gain depends on the sizes' shares and the load, which are not printed"


def _gains(found: Mapping[str, float], words: str, utilisation: float, wait: float, why: str) -> list[Comparison]:
    """Three rows of one gain; tolerances: for large effects of the size of what seeds and loads change, else half."""
    tolerance = (1.5, 5.0) if abs(utilisation) > 1 else (utilisation / 2, abs(wait) / 2)
    return [
        Comparison(
            f"{words}: utilisation, relative", utilisation, found["utilisation_relative_percent"], "%", tolerance[0],
            why=why, picture="figure5.png",
        ),
        Comparison(
            f"{words}: wait, ratio of means", wait, found["wait_of_means_percent"], "%", tolerance[1], why=why,
            picture="figure6.png",
        ),
        Comparison(
            f"{words}: wait, mean over windows", wait, found["wait_mean_over_windows_percent"], "%", tolerance[1],
            why=why, picture="figure6.png",
        ),
    ]  # fmt: skip


def _over_windows(rows: Rows, method: str, windows: Sequence[int]) -> list[Comparison]:
    """The study: with a larger window utilisation grows in all experiments, and waits shrink considerably."""
    mine = [row for row in rows if row["method"] == method]
    use, wait = (
        [fmean(row[measure] for row in mine if row["window"] == window) for window in windows] for measure in MEASURES
    )
    step = 100 * min(after - before for before, after in pairwise(use))
    return [
        Comparison(
            f"{method}: least step of utilisation from window to window", "grows", step, "points", at_least=0.0,
            why="the largest windows are as good as each other", picture="figure5.png",
        ),
        Comparison(
            f"{method}: wait with window {windows[-1]} against {windows[0]}", "considerably shorter",
            100 * (wait[-1] / wait[0] - 1), "%", at_most=-50.0, why="window first-fit helps less here",
            picture="figure6.png",
        ),
    ]  # fmt: skip


def _key(row: Row) -> tuple[Any, ...]:
    return (row["system"], row["window"])
