"""Tables of the Angara allocation study: means over systems and seeds, gains, and the paper's headlines beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from simulation.experiments.comparison import Comparison
from simulation.experiments.means import confidence_interval
from simulation.experiments.result import Column, Columns, grouped

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
    "wait_percent": Column("%", "change of the mean relative wait over everything"),
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

Row = Mapping[str, Any]


def means_by_seed(rows: Sequence[Row], measure: str) -> dict[int, float]:
    """Mean over all other columns, by seed."""
    found: dict[int, list[float]] = {}
    for row in rows:
        found.setdefault(row["seed"], []).append(row[measure])
    return {seed: fmean(values) for seed, values in found.items()}


def average_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Figures 5 and 6: each method and window, the mean over the systems, with its interval over the seeds."""
    table = []
    for measure in MEASURES:
        scale = 100 if measure == "utilisation" else 1
        for (method, window), group in grouped(rows, "method", "window").items():
            values = confidence_interval([scale * value for value in means_by_seed(group, measure).values()])
            table.append(_entry({"measure": measure, "method": method, "window": window}, values))
    return table


def system_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same for each system."""
    table = []
    for measure in MEASURES:
        scale = 100 if measure == "utilisation" else 1
        for (system, method, window), group in grouped(rows, "system", "method", "window").items():
            values = confidence_interval([scale * row[measure] for row in group])
            table.append(_entry({"measure": measure, "system": system, "method": method, "window": window}, values))
    return table


def differences(rows: Sequence[Row], *better: str) -> list[dict[str, Any]]:
    """How much each of the `better` methods gains on every other one, by load, over all systems and windows.

    Paired by seed: utilisation in points and relative; relative wait as the ratio of the means over everything, and as
    the mean over the windows of the ratios of the means over the systems (what figure 6 shows).
    """
    table = []
    for (load,), group in grouped(rows, "load").items():
        labels = list(dict.fromkeys(row["method"] for row in group))
        for one in better:
            table += [
                {"load": load, "method": one, "against": other, **gain(group, one, other)}
                for other in labels
                if one in labels and other != one
            ]
    return table


def gain(rows: Sequence[Row], one: str, other: str) -> dict[str, float]:
    """What one method gains on another on the same workloads: means over seeds, `_ci` half a 95 % interval."""
    seeds = sorted({row["seed"] for row in rows})
    columns: dict[str, list[float]] = {}
    for seed in seeds:
        mine = {_key(row): row for row in rows if row["method"] == one and row["seed"] == seed}
        theirs = {_key(row): row for row in rows if row["method"] == other and row["seed"] == seed}
        common = sorted(mine.keys() & theirs.keys())
        use = fmean(mine[key]["utilisation"] for key in common), fmean(theirs[key]["utilisation"] for key in common)
        wait = (
            fmean(mine[key]["relative_wait"] for key in common),
            fmean(theirs[key]["relative_wait"] for key in common),
        )
        ratios = []
        for window in sorted({window for _, window in common}):
            keys = [key for key in common if key[1] == window]
            waits = sum(theirs[key]["relative_wait"] for key in keys)
            if waits:
                ratios.append(sum(mine[key]["relative_wait"] for key in keys) / waits)
        for name, value in (
            ("utilisation_points", 100 * (use[0] - use[1])),
            ("utilisation_relative_percent", 100 * (use[0] / use[1] - 1)),
            ("wait_of_means_percent", 100 * (wait[0] / wait[1] - 1)),
            ("wait_mean_over_windows_percent", 100 * (fmean(ratios) - 1) if ratios else 0.0),
        ):
            columns.setdefault(name, []).append(value)
    result = {}
    for name, values in columns.items():
        found = confidence_interval(values)
        result[name] = round(found.mean, 3)
        result[f"{name}_ci"] = round(found.half_width, 3)
    return result


def readings_table(rows: Sequence[Row], readings: Sequence[Row], belongs_to: Mapping[str, str]) -> list[dict[str, Any]]:
    """What each other reading changes, against its method at the same seed, over all systems and windows."""
    table = []
    for (label,), group in grouped(readings, "method").items():
        method = belongs_to[label]
        seeds = {row["seed"] for row in group}
        ours = gain([*group, *(row for row in rows if row["method"] == method and row["seed"] in seeds)], label, method)
        table.append(
            {
                "reading": label,
                "method": method,
                "utilisation_points": ours["utilisation_points"],
                "utilisation_relative_percent": ours["utilisation_relative_percent"],
                "wait_percent": ours["wait_of_means_percent"],
                "utilisation_percent": round(100 * fmean(row["utilisation"] for row in group), 2),
                "refused": sum(row["refused"] for row in group),
            }
        )
    return table


def comparisons(rows: Sequence[Row], *, mss: str, bases: Sequence[str], plain: str, ours: str) -> list[Comparison]:
    """Compare the study's headlines with ours, for each reading of base and both statistics of waits.

    Methods are given by their labels in the tables.
    """
    result = []
    for base in bases:
        result += _gains(gain(rows, mss, base), f"mss over {base}", UTILISATION_GAIN, WAIT_GAIN, _WHY_BASE)
    result += _gains(gain(rows, mss, plain), f"mss over {plain}", PHI_UTILISATION_GAIN, PHI_WAIT_GAIN, _WHY_PHI)
    windows = sorted({row["window"] for row in rows})
    for method in (*bases, plain, mss):
        result += _over_windows(rows, method, windows)
    best = gain(rows, ours, mss)
    own = "an allocator of our own, which the study does not have"
    return [
        *result,
        Comparison(f"{ours} over mss: utilisation", "-", best["utilisation_relative_percent"], "%", why=own),
        Comparison(f"{ours} over mss: wait, ratio of means", "-", best["wait_of_means_percent"], "%", why=own),
        Comparison(
            f"{ours} over mss: wait, mean over windows", "-", best["wait_mean_over_windows_percent"], "%", why=own
        ),
    ]


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


def _over_windows(rows: Sequence[Row], method: str, windows: Sequence[int]) -> list[Comparison]:
    """The study: with a larger window utilisation grows in all experiments, and waits shrink considerably."""
    use, wait = (
        [fmean(row[measure] for row in rows if _is(row, method, window)) for window in windows] for measure in MEASURES
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


def _is(row: Row, method: str, window: int) -> bool:
    return bool(row["method"] == method and row["window"] == window)


def _key(row: Row) -> tuple[Any, ...]:
    return (row["system"], row["window"])


def _entry(names: dict[str, Any], values: Any) -> dict[str, Any]:
    return {
        **names,
        "mean": round(values.mean, 4),
        "ci95_half_width": round(values.half_width, 4),
        "standard_deviation": round(values.deviation, 4),
        "seeds": values.count,
    }
