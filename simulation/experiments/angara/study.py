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
from typing import Any, Final

from simulation.experiments.angara.gains import (
    MEASURE_COLUMNS,
    MEASURES,
    comparisons,
    differences,
    mean_table,
    means_by_seed,
)
from simulation.experiments.angara.pictures import FIGURES
from simulation.experiments.angara.runs import (
    FIND_SYSTEMS,
    METHODS,
    MICROSECONDS,
    MSS,
    SYSTEMS,
    Setting,
    System,
    recipe_of,
    run_setting,
    workload_of,
)
from simulation.experiments.result import Column
from simulation.experiments.study import Found, Rows, Run, Shown, Study, rows_of
from simulation.workload.generators.angara_workload import duration_s

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
            "share_drawn": round(drawn[(len(drawn) - 1) * percentile // 100] / MICROSECONDS / longest, 8),
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
