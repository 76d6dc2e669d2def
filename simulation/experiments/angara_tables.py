"""Tables of the Angara allocation study: means over systems and seeds, gains, and the paper's headlines beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from simulation.experiments.result import Comparison
from simulation.experiments.spread import spread

MEASURES: Final = ("utilisation", "relative_wait")
EARLIER: Final[Mapping[str, tuple[float, ...]]] = {
    "base-ring (assumed handicap)": (42.5, 43.0, 43.7, 46.5, 51.3, 57.7, 61.2, 62.2),
    "find-systems": (46.7, 47.2, 47.8, 50.2, 54.5, 59.7, 62.1, 62.6),
    "find-systems-mss": (47.1, 47.5, 48.1, 50.6, 54.8, 60.0, 62.2, 62.6),
    "torus-distance": (47.4, 47.6, 48.3, 50.7, 55.0, 60.0, 62.1, 62.6),
}
"""Utilisation in per cent for w = 1, 2, 4, ..., 128, from an earlier, independent implementation of the same readings.

Load 0.65, the same 12 sets of systems and sizes, 4 seeds of other random numbers.
"""
EARLIER_TOLERANCE_POINTS: Final = 1.0
"""Seeds differ by about 0.5 points in the mean over all systems."""

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
        for (method, window), group in _grouped(rows, "method", "window").items():
            values = spread([scale * value for value in means_by_seed(group, measure).values()])
            table.append(_entry({"measure": measure, "method": method, "window": window}, values))
    return table


def system_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same for each system."""
    table = []
    for measure in MEASURES:
        scale = 100 if measure == "utilisation" else 1
        for (system, method, window), group in _grouped(rows, "system", "method", "window").items():
            values = spread([scale * row[measure] for row in group])
            table.append(_entry({"measure": measure, "system": system, "method": method, "window": window}, values))
    return table


def differences(rows: Sequence[Row], *better: str) -> list[dict[str, Any]]:
    """How much each of the `better` methods gains on every other one, by load, over all systems and windows.

    Paired by seed: utilisation in points and relative; relative wait as the ratio of the means over everything, and as
    the mean over the windows of the ratios of the means over the systems (what figure 6 shows).
    """
    table = []
    for (load,), group in _grouped(rows, "load").items():
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
        found = spread(values)
        result[name] = round(found.mean, 3)
        result[f"{name}_ci"] = round(found.half_width, 3)
    return result


def readings_table(rows: Sequence[Row], readings: Sequence[Row], belongs_to: Mapping[str, str]) -> list[dict[str, Any]]:
    """What each other reading changes, against its method at the same seed, over all systems and windows."""
    table = []
    for (label,), group in _grouped(readings, "method").items():
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


def comparisons(rows: Sequence[Row], *, complete: bool) -> list[Comparison]:
    """The study's headlines beside ours.

    Args:
        rows: of the main simulations.
        complete: all systems, windows and seeds; only then are numbers judged.
    """
    mss, base, ring, plain = "find-systems-mss", "base as printed", "base-ring (assumed handicap)", "find-systems"
    ours = "room-ahead (ours)"
    against_ring, against_base, against_plain = (gain(rows, mss, other) for other in (ring, base, plain))
    result = [
        Comparison(
            "utilisation, mss over base, base with the assumed handicap, relative", 7.0,
            against_ring["utilisation_relative_percent"], "%", 1.5 if complete else None,
        ),
        Comparison(
            "relative wait, mss over base, base with the assumed handicap", -36.6,
            against_ring["wait_mean_over_windows_percent"], "%", 5.0 if complete else None,
        ),
        Comparison(
            "utilisation, mss over base, base as printed, relative", 7.0,
            against_base["utilisation_relative_percent"], "%", 1.5 if complete else None,
        ),
        Comparison(
            "relative wait, mss over base, base as printed", -36.6, against_base["wait_mean_over_windows_percent"], "%",
            5.0 if complete else None,
        ),
        Comparison(
            "utilisation, mss over find-systems, relative", 0.5, against_plain["utilisation_relative_percent"], "%",
            0.5 if complete else None,
        ),
        Comparison(
            "relative wait, mss over find-systems", -2.0, against_plain["wait_of_means_percent"], "%",
            4.0 if complete else None,
        ),
    ]  # fmt: skip
    windows = sorted({row["window"] for row in rows})
    for method in (ring, plain, mss):
        by_window = [fmean(row["utilisation"] for row in rows if _is(row, method, window)) for window in windows]
        step = 100 * min(after - before for before, after in pairwise(by_window))
        result.append(
            Comparison(f"{method}: smallest step of utilisation from window to window", "grows", step, "points")
        )
    best = gain(rows, ours, mss)
    result += [
        Comparison("ours over mss: utilisation, relative", "-", best["utilisation_relative_percent"], "%"),
        Comparison("ours over mss: relative wait", "-", best["wait_of_means_percent"], "%"),
    ]
    if complete:
        result += _against_earlier(rows, windows)
    return result


def _against_earlier(rows: Sequence[Row], windows: Sequence[int]) -> list[Comparison]:
    """Largest difference over the windows from the earlier implementation."""
    result = []
    for method, values in EARLIER.items():
        gaps = [
            100 * fmean(row["utilisation"] for row in rows if _is(row, method, window)) - value
            for window, value in zip(windows, values, strict=True)
        ]
        worst = max(gaps, key=abs)
        what = f"{method}: farthest from an earlier implementation, any window"
        result.append(Comparison(what, 0.0, worst, "points", EARLIER_TOLERANCE_POINTS))
    return result


def _is(row: Row, method: str, window: int) -> bool:
    return bool(row["method"] == method and row["window"] == window)


def _key(row: Row) -> tuple[Any, ...]:
    return (row["system"], row["window"])


def _grouped(rows: Sequence[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found


def _entry(names: dict[str, Any], values: Any) -> dict[str, Any]:
    return {
        **names,
        "mean": round(values.mean, 4),
        "ci95_half_width": round(values.half_width, 4),
        "standard_deviation": round(values.deviation, 4),
    }
