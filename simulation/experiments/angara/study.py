"""The 2019 Angara allocation study again: its figures 3 to 6, per system and on average.

A. V. Mukosey, A. S. Semenov, A. S. Simonov, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, pp. 5-19.

The study prints neither the shares of the sizes nor the number of jobs, neither the limit of transit nodes nor the
order in which Find_Systems tries its variants. So its first allocator, `base`, stands in three readings beside the
paper: as printed, with boxes that may run over the seam of a ring (it comes out like Find_Systems); without wrap and
with the smallest volume first, which invents no table (about 70 % of the gap that the study reports); and with an
assumed handicap, `base-ring`, which was chosen, together with the load, because it gives that gap. What does not depend
on such choices: phi adds about half a per cent; waits fall where utilisation rises; utilisation grows with the window.
Other readings are in `examples/studies/angara_readings.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from ramp.model.instant import SECOND
from simulation.experiments.angara.pictures import FIGURES
from simulation.experiments.angara.runs import (
    BASES,
    FIND_SYSTEMS,
    METHODS,
    MSS,
    SYSTEMS,
    Setting,
    System,
    recipe_of,
    run_setting,
    workload_of,
)
from simulation.experiments.comparison import Comparison
from simulation.experiments.result import Column, Columns, Row, Rows, confidence_interval, grouped
from simulation.experiments.study import Found, Run, Shown, Study, rows_of
from simulation.workload.generators.angara_workload import duration_s

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


LOAD: Final = 0.65
WINDOWS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
QUICK_WINDOWS: Final = (1, 16, 128)
QUICK_SYSTEMS: Final = (SYSTEMS[0], SYSTEMS[3], SYSTEMS[11])
SEEDS: Final = 4
QUICK_SEEDS: Final = 2


NOTES: Final = (
    (
        "The study's base is not fully printed. Three readings stand beside its numbers: without wrap and smallest "
        "volume first (base-no-wrap: nothing invented), as printed with wrap (allocates like Find_Systems), and "
        "base-ring, an assumption that was chosen, together with the load, because it gives the study's gap."
    ),
    (
        "The study says of waits only that they fall by so much in the mean; both statistics stand there, the ratio of "
        "the means over everything and the mean over the windows of the ratios."
    ),
    (
        "The shares of the sizes, the number of jobs and the load are not printed either; no load that was tried gives "
        "both the gain of utilisation and that of waits."
    ),
)
"""What a reader of the comparison should know."""


def extent(run: Run) -> tuple[Sequence[System], Sequence[int], range]:
    """Systems, windows and seeds of a run."""
    return run.either(SYSTEMS, QUICK_SYSTEMS), run.either(WINDOWS, QUICK_WINDOWS), run.seeds(SEEDS, QUICK_SEEDS)


def cases(run: Run) -> Mapping[str, Sequence[Setting]]:
    """All methods on the very same jobs."""
    systems, windows, seeds = extent(run)
    settings = [
        Setting(system, variant, window, LOAD, seed)
        for system in systems
        for seed in seeds
        for variant in METHODS
        for window in windows
    ]
    return {"main": settings}


def _sizes(found: Found) -> Rows:
    systems, seed = extent(found.run)[0], found.run.seed
    rows = []
    seen = set()
    for system in systems:
        if (system.nodes, system.desmos) in seen:
            continue
        seen.add((system.nodes, system.desmos))
        recipe = recipe_of(Setting(system, FIND_SYSTEMS, 1, LOAD, seed))
        jobs = workload_of(recipe, seed)
        drawn = Counter(jobs.size.tolist())
        panel = f"{system.nodes} nodes" + (", Desmos" if system.desmos else "")
        rows += [
            {"panel": panel, "size": size, "share": round(share, 6), "share_drawn": round(drawn[size] / len(jobs), 6)}
            for size, share in recipe.shares.items()
        ]
    return rows


def _durations(found: Found) -> Rows:
    seed = found.run.seed
    jobs = workload_of(recipe_of(Setting(SYSTEMS[0], FIND_SYSTEMS, 1, LOAD, seed)), seed)
    drawn = sorted(jobs.run_time.tolist())
    longest = duration_s(100)
    return [
        {
            "percentile": percentile,
            "share_of_maximum": round(duration_s(percentile) / longest, 8),
            "share_drawn": round(drawn[(len(drawn) - 1) * percentile // 100] / SECOND / longest, 8),
        }
        for percentile in range(101)
    ]


def _averages(found: Found) -> Rows:
    """Utilisation in per cent and relative wait of each method, mean over all systems, windows and seeds."""
    rows, seeds = found.answers["main"], len(extent(found.run)[2])
    result = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method.label]
        use, wait = (sum(means_by_seed(mine, measure).values()) / seeds for measure in MEASURES)
        held = sum(row["allocated"] for row in mine) / sum(row["utilisation"] for row in mine)
        result.append(
            {
                "method": method.label,
                "utilisation_percent": round(100 * use, 2),
                "relative_wait": round(wait, 1),
                "held_above_requested_percent": round(100 * (held - 1), 2),
            }
        )
    return result


def _parameters(found: Found) -> Mapping[str, Any]:
    systems, windows, seeds = extent(found.run)
    return {
        "systems": [system.name for system in systems],
        "windows": list(windows),
        "load": LOAD,
        "seeds": list(seeds),
        "methods": {method.label: {"allocator": method.allocator, **dict(method.options)} for method in METHODS},
        "scheduler": "window first-fit; a window position is a number of submission, as printed",
        "utilisation": "nodes asked for x run time / (nodes x time from 0 to the last end)",
        "relative_wait": "mean over all jobs of wait / run time, a ratio without unit",
        "durations": "exact; run time = requested time; the study's two-part law up to 24 hours",
        "arrivals": "uniform over 120 days, over 30 days with the sizes of Desmos",
        "sizes": "assumed: 2^a, 3 * 2^a, 18, 36, 72, a power of two four times as likely, falling with sqrt(size)",
        "base": "the study does not print whether boxes wrap nor how many transit nodes they may have; see `notes`",
        "base-ring": "assumed: shortest ring routes fixed for the cluster, at most 4 nodes above the smallest volume",
    }


EXPERIMENTS: Final = (
    Study(
        name="angara",
        about="allocators and windows on Angara tori (Mukosey and others 2019)",
        cases=cases,
        measure=run_setting,
        order=lambda setting: -setting.system.nodes,
        together=lambda setting: (setting.system, setting.variant, setting.load, setting.seed),
        tables={
            "runs": rows_of("main"),
            "figure3": _sizes,
            "figure4": _durations,
            "figure5": lambda found: mean_table(found.answers["main"], MEASURES[:1], "method", "window"),
            "figure6": lambda found: mean_table(found.answers["main"], MEASURES[1:], "method", "window"),
            "systems": lambda found: mean_table(found.answers["main"], MEASURES, "system", "method", "window"),
            "differences": lambda found: differences(found.answers["main"], MSS.label),
            "averages": _averages,
        },
        columns={
            **MEASURE_COLUMNS,
            "system": Column("", "extents of the torus; Desmos: with the sizes of jobs seen on that cluster"),
            "nodes": Column("nodes", "of the torus"),
            "method": Column("", "allocator and how it is read"),
            "against": Column("", "the method that it is compared with"),
            "window": Column("jobs", "window of first-fit"),
            "load": Column("work / capacity", "node-time requested / (nodes x horizon)"),
            "runs.csv/utilisation": Column("share", "nodes asked for x run time / (nodes x time to the last end)"),
            "allocated": Column("share", "the same with the nodes of the boxes"),
            "runs.csv/relative_wait": Column("", "mean over all jobs of wait / run time"),
            "mean_wait_h": Column("h", "mean wait"),
            "jobs": Column("jobs", "that ran"),
            "refused": Column("jobs", "that never fit"),
            "panel": Column("", "of figure 3"),
            "size": Column("nodes", "size of jobs"),
            "share": Column("share of jobs", "as wanted"),
            "share_drawn": Column("", "as drawn with one seed; of jobs in figure3.csv, of 24 hours in figure4.csv"),
            "percentile": Column("% of jobs", "jobs that are no longer"),
            "share_of_maximum": Column("share of 24 hours", "duration by the study's law"),
            "averages.csv/relative_wait": Column("", "the same, mean over all systems, windows and seeds"),
            "held_above_requested_percent": Column("%", "nodes of the boxes above those asked for"),
        },
        figures=FIGURES,
        comparisons=lambda found: comparisons(found.answers["main"]),
        shown=(
            Shown(
                "averages",
                "method utilisation_percent relative_wait held_above_requested_percent",
                f"Means over everything at load {LOAD}; differences are relative unless they say points",
            ),
        ),
        findings={"differences": lambda found: found["differences"]},
        parameters=_parameters,
        notes=NOTES,
    ),
)
