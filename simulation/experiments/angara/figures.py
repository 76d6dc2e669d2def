"""The 2019 Angara allocation study again: its figures 3 to 6, per system and on average.

A. V. Mukosey, A. S. Semenov, A. S. Simonov, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, pp. 5-19.

The study prints neither the shares of the sizes nor the number of jobs, neither the limit of transit nodes nor the
order in which Find_Systems tries its variants. So its first allocator, `base`, stands in three readings beside the
paper: as printed, with boxes that may run over the seam of a ring (it comes out like Find_Systems); without wrap and
with the smallest volume first, which invents no table (about 70 % of the gap that the study reports); and with an
assumed handicap, `base-ring`, which was chosen, together with the load, because it gives that gap. What does not depend
on such choices: phi adds about half a per cent; waits fall where utilisation rises; utilisation grows with the window.
Other readings are in `readings.csv`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from simulation.experiments.angara.gains import (
    MEASURE_COLUMNS,
    average_table,
    comparisons,
    differences,
    means_by_seed,
    readings_table,
    system_table,
)
from simulation.experiments.angara.plots import draw_bars, draw_figure3, draw_figure4, draw_others, draw_systems
from simulation.experiments.angara.runs import (
    MICROSECONDS,
    NO_TORUS,
    SYSTEMS,
    Setting,
    System,
    Variant,
    recipe_of,
    run_settings,
    workload_of,
)
from simulation.experiments.comparison import tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.worker_processes import run_all
from simulation.schedulers.policies.window_first_fit import WindowCounts
from simulation.workload.generators.angara_workload import DurationUnit, Sizes, duration_s

LOAD: Final = 0.65
WINDOWS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
QUICK_WINDOWS: Final = (1, 16, 128)
QUICK_SYSTEMS: Final = (SYSTEMS[0], SYSTEMS[3], SYSTEMS[11])
SEEDS: Final = 4
QUICK_SEEDS: Final = 2

BASE: Final = Variant("base as printed", "base")
_NO_WRAP: Final = ("wrap", False)
BASE_NO_WRAP: Final = Variant("base-no-wrap (smallest volume)", "base-no-wrap")
BASE_RING: Final = Variant("base-ring (assumed handicap)", "base-ring")
BASES: Final = (BASE_NO_WRAP, BASE, BASE_RING)
FIND_SYSTEMS: Final = Variant("find-systems", "find-systems")
MSS: Final = Variant("find-systems-mss", "find-systems-mss")
MSS_EXACT: Final = Variant("find-systems-mss, exact phi", "find-systems-mss", (("exact", True),))
TORUS_DISTANCE: Final = Variant("torus-distance", "torus-distance")
ROOM_AHEAD: Final = Variant("room-ahead (ours)", "room-ahead")
ANY_NODES: Final = Variant("any free nodes (no torus)", NO_TORUS)
METHODS: Final = (BASE_NO_WRAP, BASE, BASE_RING, FIND_SYSTEMS, MSS, MSS_EXACT, TORUS_DISTANCE, ROOM_AHEAD, ANY_NODES)
"""The last one is no allocator but the ceiling: window first-fit where any free nodes serve."""

LOADS: Final = (0.6, 0.7)
"""Other loads, at which mss is compared with both bases."""
READINGS: Final = (
    Variant("base-ring, any volume", "base-ring", (("transit_max", 144),)),
    Variant("base-ring, smallest volume", "base-ring", (("transit_max", 0),)),
    Variant("base, no wrap, any volume", "base", (_NO_WRAP,)),
    Variant("find-systems, transit 0", "find-systems", (("transit_max", 0),)),
    Variant("find-systems, transit 4", "find-systems", (("transit_max", 4),)),
    Variant("find-systems, no wrap", "find-systems", (_NO_WRAP,)),
    Variant("find-systems, ranked by volume alone", "find-systems", (("by_distance", False),)),
    Variant("find-systems, window of waiting jobs", "find-systems", counts=WindowCounts.WAITING),
    Variant("find-systems, durations in minutes", "find-systems", duration_unit=DurationUnit.MINUTES),
    Variant("find-systems, sizes powers of two", "find-systems", sizes=Sizes.POWERS),
    Variant("room-ahead, all jobs ask for 24 h", "room-ahead", all_ask_for_the_maximum=True),
)
"""Other readings of what the study leaves open; each is run with one seed over all windows."""

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

_COLUMNS: Final[Columns] = {
    "system": Column("", "extents of the torus; Desmos: with the sizes of jobs seen on that cluster"),
    "nodes": Column("nodes", "of the torus"),
    "method": Column("", "allocator and how it is read"),
    "against": Column("", "the method that it is compared with"),
    "reading": Column("", "what is read otherwise"),
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
}

Row = Mapping[str, Any]


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`."""
    systems, windows = (QUICK_SYSTEMS, QUICK_WINDOWS) if quick else (SYSTEMS, WINDOWS)
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    main = _settings(systems, METHODS, windows, (LOAD,), seeds)
    other_loads = [] if quick else _settings(systems, (*BASES, FIND_SYSTEMS, MSS), windows, LOADS, seeds)
    # one seed for the readings: each is compared with find-systems on the very same jobs
    readings = _settings(systems, READINGS, windows, (LOAD,), seeds[:1])
    tasks = _tasks([*main, *other_loads, *readings])
    answers = run_all(run_settings, tasks, processes=processes, on_progress=on_progress)
    rows_of = {
        setting: row for task, rows in zip(tasks, answers, strict=True) for setting, row in zip(task, rows, strict=True)
    }
    rows = [rows_of[setting] for setting in main]
    rows_of_loads = [rows_of[setting] for setting in other_loads]
    rows_of_readings = [rows_of[setting] for setting in readings]
    write_rows(out / "runs.csv", [*rows, *rows_of_loads, *rows_of_readings])
    write_rows(out / "figure3.csv", _sizes(systems, seed))
    write_rows(out / "figure4.csv", _durations(seed))
    averages = average_table(rows)
    write_rows(out / "figure5.csv", [row for row in averages if row["measure"] == "utilisation"])
    write_rows(out / "figure6.csv", [row for row in averages if row["measure"] == "relative_wait"])
    write_rows(out / "systems.csv", system_table(rows))
    gains = differences([*rows, *rows_of_loads], MSS.label, ROOM_AHEAD.label)
    write_rows(out / "differences.csv", gains)
    other = readings_table(rows, rows_of_readings, {variant.label: _like(variant) for variant in READINGS})
    write_rows(out / "readings.csv", other)
    _draw(out, quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(systems, windows, list(seeds)),
        comparisons=comparisons(
            rows,
            mss=MSS.label,
            bases=[one.label for one in BASES],
            plain=FIND_SYSTEMS.label,
            ours=ROOM_AHEAD.label,
        ),
        findings={"differences": gains, "readings": other, "averages": _averages(rows), "notes": list(NOTES)},
        columns={**MEASURE_COLUMNS, **_COLUMNS},
    )


def _settings(
    systems: Sequence[System],
    variants: Iterable[Variant],
    windows: Sequence[int],
    loads: Sequence[float],
    seeds: Iterable[int],
) -> list[Setting]:
    return [
        Setting(system, variant, window, load, seed)
        for system in systems
        for seed in seeds
        for variant in variants
        for load in loads
        for window in windows
    ]


def _tasks(settings: Sequence[Setting]) -> list[tuple[Setting, ...]]:
    """Simulations of one system, allocator and load together; large systems first, so that no process ends alone."""
    groups: dict[object, list[Setting]] = {}
    for setting in settings:
        key = (setting.system, setting.variant, setting.load, setting.seed)
        groups.setdefault(key, []).append(setting)
    ordered = sorted(groups.values(), key=lambda group: -group[0].system.nodes)
    return [tuple(group) for group in ordered]


def _like(variant: Variant) -> str:
    """The method that a reading is a reading of."""
    by_allocator = {method.allocator: method.label for method in METHODS if not method.options}
    return by_allocator[variant.allocator]


def _sizes(systems: Sequence[System], seed: int) -> list[dict[str, Any]]:
    """Figure 3: share of each size, as wanted and as drawn."""
    rows = []
    seen = set()
    for system in systems:
        if (system.nodes, system.sizes) in seen:
            continue
        seen.add((system.nodes, system.sizes))
        recipe = recipe_of(Setting(system, FIND_SYSTEMS, 1, LOAD, seed))
        jobs = workload_of(recipe, seed)
        drawn = Counter(jobs.size.tolist())
        panel = f"{system.nodes} nodes" + (", Desmos" if system.sizes is Sizes.DESMOS else "")
        rows += [
            {"panel": panel, "size": size, "share": round(share, 6), "share_drawn": round(drawn[size] / len(jobs), 6)}
            for size, share in recipe.shares.items()
        ]
    return rows


def _durations(seed: int) -> list[dict[str, Any]]:
    """Figure 4: duration at each percentile as a share of the maximum, by the law and as drawn."""
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


def _draw(out: Path, *, quick: bool) -> None:
    everyone = [method.label for method in METHODS]
    bars = {
        BASE_NO_WRAP.label: "base (no wrap, smallest volume)",
        FIND_SYSTEMS.label: "Find_Systems",
        MSS.label: "Find_Systems+MSS",
    }
    draw_figure3(out / "figure3.csv", out / "figure3.png", quick=quick)
    draw_figure4(out / "figure4.csv", out / "figure4.png", quick=quick)
    shown = [BASE_NO_WRAP.label, BASE_RING.label, FIND_SYSTEMS.label, MSS.label, ROOM_AHEAD.label]
    for number, measure, label, most in (
        (5, "utilisation", "utilisation (%)", 80.0),
        (6, "relative_wait", "mean wait / requested time", None),
    ):
        table = out / f"figure{number}.csv"
        draw_bars(table, out / f"figure{number}.png", bars, number, label, most, quick=quick)
        draw_others(table, out / f"figure{number}-others.png", everyone, number, label, quick=quick)
        systems = out / f"figure{number}-systems.png"
        draw_systems(out / "systems.csv", systems, shown, everyone, measure, number, label, quick=quick)


def _averages(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Utilisation in per cent and relative wait of each method, mean over all systems, windows and seeds."""
    result = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method.label]
        result.append(
            {
                "method": method.label,
                "utilisation_percent": round(
                    100 * sum(means_by_seed(mine, "utilisation").values()) / len({row["seed"] for row in mine}), 2
                ),
                "relative_wait": round(
                    sum(means_by_seed(mine, "relative_wait").values()) / len({row["seed"] for row in mine}), 1
                ),
                "held_above_requested_percent": round(
                    100 * (sum(row["allocated"] for row in mine) / sum(row["utilisation"] for row in mine) - 1), 2
                ),
            }
        )
    return result


def _parameters(systems: Sequence[System], windows: Sequence[int], seeds: Sequence[int]) -> dict[str, Any]:
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
        "room-ahead": "uses requested times, which are the run times here; `readings.csv` has what it is without them",
    }


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [
        f"load {summary['parameters']['load']}; differences of utilisation are relative unless they say points",
        "",
        *tell_comparison(summary),
        "",
        *(f"Note: {note}" for note in summary["notes"]),
    ]
    lines += ["", f"{'method':32}  {'utilisation %':>13}  {'relative wait':>13}  {'transit nodes %':>15}"]
    for row in summary["averages"]:
        lines.append(
            f"{row['method']:32}  {row['utilisation_percent']:13.1f}  {row['relative_wait']:13.0f}"
            f"  {row['held_above_requested_percent']:15.1f}"
        )
    lines += ["", "Other readings of what the study leaves open (one seed), against the method they belong to:"]
    for row in summary["readings"]:
        lines.append(
            f"  {row['reading']:40} {row['utilisation_points']:+6.2f} points  wait {row['wait_percent']:+6.1f} %"
        )
    return lines


EXPERIMENTS: Final = (
    Experiment("angara", "allocators and windows on Angara tori (Mukosey and others 2019)", run, _tell),
)
