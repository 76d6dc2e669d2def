"""Angara: other readings of what the 2019 allocation study leaves open, further allocators, and other loads.

All numbers are ours. The study does not print the limit of transit nodes, what a window counts, or the shares of the
sizes. Each reading is compared with its method of `ramp experiment run angara` on the very same jobs (one seed). The
further allocators are `torus-distance` and the exact `phi`; `any free nodes` is no allocator but the ceiling.

ramp experiment run examples/studies/angara_readings.py:STUDY --out results --quick
"""

from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from ramp.model.instant import MINUTE
from simulation.experiments.angara.runs import (
    BASES,
    FIND_SYSTEMS,
    METHODS,
    MSS,
    Setting,
    Variant,
    ranked_boxes,
    recipe_of,
    row_of,
)
from simulation.experiments.angara.study import EXPERIMENTS, LOAD, MEASURE_COLUMNS, differences, extent, gain
from simulation.experiments.result import Column, grouped
from simulation.experiments.study import Shown, Study, rows_of
from simulation.queueing.box_window import run_window_first_fit
from simulation.schedulers.compiled.window_first_fit import window_first_fit
from simulation.schedulers.policies.window_first_fit import WindowCounts, WindowOptions
from simulation.workload.generators.angara_workload import Recipe, make_workload
from simulation.workload.metrics import Schedule

LOADS: Final = (0.6, 0.7)
ANY_NODES: Final = Variant("any free nodes (no torus)", "none")
FURTHER: Final = (
    Variant("find-systems-mss, exact phi", "find-systems-mss", (("exact", True),)),
    Variant("torus-distance", "torus-distance"),
    ANY_NODES,
)
NO_WRAP: Final = ("wrap", False)
WAITING: Final = Variant("find-systems, window of waiting jobs", "find-systems")
IN_MINUTES: Final = Variant("find-systems, durations in minutes", "find-systems")
POWERS: Final = Variant("find-systems, sizes powers of two", "find-systems")
READINGS: Final = (
    Variant("base-ring, any volume", "base-ring", (("transit_max", 144),)),
    Variant("base-ring, smallest volume", "base-ring", (("transit_max", 0),)),
    Variant("base, no wrap, any volume", "base", (NO_WRAP,)),
    Variant("find-systems, transit 0", "find-systems", (("transit_max", 0),)),
    Variant("find-systems, transit 4", "find-systems", (("transit_max", 4),)),
    Variant("find-systems, no wrap", "find-systems", (NO_WRAP,)),
    Variant("find-systems, ranked by volume alone", "find-systems", (("by_distance", False),)),
    WAITING,
    IN_MINUTES,
    POWERS,
)
"""The last three change no option of the allocator but what `run_reading` does."""


@dataclass(frozen=True, slots=True)
class PowersOfTwo(Recipe):
    """A workload whose sizes are powers of two alone, with the same shares among themselves."""

    @property
    def shares(self):
        """Probability of each size."""
        kept = {size: share for size, share in Recipe.shares.fget(self).items() if size & (size - 1) == 0}
        return {size: share / sum(kept.values()) for size, share in kept.items()}


def run_reading(setting):
    """Run one simulation; its row as of the study."""
    variant, recipe = setting.variant, recipe_of(setting)
    if variant == POWERS and not recipe.desmos:
        recipe = PowersOfTwo(recipe.nodes, recipe.load)
    jobs = make_workload(recipe, setting.seed)
    if variant == IN_MINUTES:
        jobs = replace(jobs, run_time=-(-jobs.run_time // MINUTE) * MINUTE)
    submit, length, size = jobs.submit_time, jobs.run_time, jobs.size
    if variant == ANY_NODES:
        nodes = setting.system.nodes
        start = window_first_fit(submit, length, length, size, nodes, WindowOptions(setting.window))
        return row_of(setting, Schedule(submit, start, start + length, size, size, nodes))
    counts = WindowCounts.WAITING if variant == WAITING else WindowCounts.INDICES
    boxes = ranked_boxes(setting.system.extents, variant.allocator, variant.options)
    run = run_window_first_fit(boxes, submit, length, size, window=setting.window, counts=counts)
    return row_of(setting, run.schedule, run.refused)


def cases(run):
    """Methods and further allocators, the compared methods at other loads, and the readings."""
    systems, windows, seeds = extent(run)

    def every(variants, loads):
        return [
            Setting(system, variant, window, load, seeds[0])
            for system in systems
            for variant in variants
            for load in loads
            for window in windows
        ]

    compared = (*BASES, FIND_SYSTEMS, MSS)
    return {
        "methods": every((*METHODS, *FURTHER), (LOAD,)),
        "loads": every(compared, run.either(LOADS, ())),
        "readings": every(READINGS, (LOAD,)),
    }


def readings(found):
    """What each reading changes against its method, over all systems and windows."""
    methods = {method.allocator: method.label for method in METHODS}
    table = []
    for variant in READINGS:
        mine = [row for row in found.answers["readings"] if row["method"] == variant.label]
        method = methods[variant.allocator]
        ours = gain([*mine, *found.answers["methods"]], variant.label, method)
        table.append(
            {
                "reading": variant.label,
                "method": method,
                "utilisation_points": ours["utilisation_points"],
                "utilisation_relative_percent": ours["utilisation_relative_percent"],
                "wait_percent": ours["wait_of_means_percent"],
                "utilisation_percent": round(100 * fmean(row["utilisation"] for row in mine), 2),
                "refused": sum(row["refused"] for row in mine),
            }
        )
    return table


def averages(found):
    """Utilisation and wait of each method and further allocator, mean over all systems and windows."""
    return [
        {
            "method": method,
            "utilisation_percent": round(100 * fmean(row["utilisation"] for row in rows), 2),
            "relative_wait": round(fmean(row["relative_wait"] for row in rows), 1),
        }
        for (method,), rows in grouped(found.answers["methods"], "method").items()
    ]


STUDY = Study(
    name="angara-readings",
    about="other readings, allocators and loads on Angara tori: utilisation, waits",
    cases=cases,
    measure=run_reading,
    order=lambda setting: -setting.system.nodes,
    together=lambda setting: (setting.system, setting.variant, setting.load),
    tables={
        "runs": rows_of("methods", "loads", "readings"),
        "averages": averages,
        "differences": lambda found: differences([*found.answers["methods"], *found.answers["loads"]], MSS.label),
        "readings": readings,
    },
    columns={
        **EXPERIMENTS[0].columns,
        **MEASURE_COLUMNS,
        "reading": Column("", "what is read otherwise"),
        "wait_percent": Column("%", "change of the mean relative wait over everything"),
    },
    shown=(
        Shown("averages", "method utilisation_percent relative_wait", f"Means over everything at load {LOAD}"),
        Shown("readings", "reading utilisation_points wait_percent", "Readings against the method they belong to"),
    ),
    parameters={"load": LOAD, "loads": LOADS, "scheduler": "window first-fit"},
)
