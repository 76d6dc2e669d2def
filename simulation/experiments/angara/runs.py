"""One simulation of the Angara allocation study: its parameters and its row of results.

A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 3. Jobs run as long as they ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from simulation.machines.allocator_declaration import make_policy
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.queueing.box_window import run_window_first_fit
from simulation.schedulers.compiled.window_first_fit import window_first_fit as flat_window_first_fit
from simulation.schedulers.policies.window_first_fit import WindowCounts, WindowOptions
from simulation.workload.generators.angara_workload import (
    DurationUnit,
    Recipe,
    Sizes,
    Workload,
    make_workload,
)
from simulation.workload.metrics import Schedule

MICROSECONDS: Final = 1_000_000
NO_TORUS: Final = "none"
"""In place of an allocator: any free nodes serve."""


@dataclass(frozen=True, slots=True)
class System:
    """A torus and the distribution of its jobs' sizes."""

    extents: tuple[int, ...]
    sizes: Sizes = Sizes.SMOOTH

    @property
    def name(self) -> str:
        """As in the tables."""
        shape = "x".join(map(str, self.extents))
        return f"{shape} Desmos" if self.sizes is Sizes.DESMOS else shape

    @property
    def nodes(self) -> int:
        """Of the torus."""
        return prod(self.extents)


SYSTEMS: Final = (
    System((4, 4, 2)), System((4, 2, 2, 2)), System((4, 3, 3)), System((3, 3, 2, 2)), System((4, 4, 4)),
    System((4, 4, 2, 2)), System((6, 4, 4)), System((4, 4, 3, 2)), System((8, 6, 3)), System((4, 4, 3, 3)),
    System((4, 4, 2), Sizes.DESMOS), System((4, 2, 2, 2), Sizes.DESMOS),
)  # fmt: skip
"""The study's ten systems, and its smallest two with the sizes seen on Desmos."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An allocator, and how what the study leaves open is read.

    Attributes:
        label: as in the tables.
        allocator: its name.
        options: of the allocator, as (name, value).
        counts: what the window counts.
        duration_unit: to what durations are rounded.
        sizes: in place of the smooth sizes.
    """

    label: str
    allocator: str
    options: tuple[tuple[str, Any], ...] = ()
    counts: WindowCounts = WindowCounts.INDICES
    duration_unit: DurationUnit = DurationUnit.EXACT
    sizes: Sizes | None = None


BASE: Final = Variant("base as printed", "base")
_NO_WRAP: Final = ("wrap", False)
BASE_NO_WRAP: Final = Variant("base-no-wrap (smallest volume)", "base-no-wrap")
BASE_RING: Final = Variant("base-ring (assumed handicap)", "base-ring")
BASES: Final = (BASE_NO_WRAP, BASE, BASE_RING)
FIND_SYSTEMS: Final = Variant("find-systems", "find-systems")
MSS: Final = Variant("find-systems-mss", "find-systems-mss")
MSS_EXACT: Final = Variant("find-systems-mss, exact phi", "find-systems-mss", (("exact", True),))
TORUS_DISTANCE: Final = Variant("torus-distance", "torus-distance")
ANY_NODES: Final = Variant("any free nodes (no torus)", NO_TORUS)
METHODS: Final = (BASE_NO_WRAP, BASE, BASE_RING, FIND_SYSTEMS, MSS, MSS_EXACT, TORUS_DISTANCE, ANY_NODES)
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
)
"""Other readings of what the study leaves open; each is run with one seed over all windows."""


@dataclass(frozen=True, slots=True)
class Setting:
    """All that decides one simulation.

    Attributes:
        system: the machine and its sizes.
        variant: the allocator and the readings.
        window: w.
        load: node-time requested / (nodes x horizon).
        seed: of the workload.
    """

    system: System
    variant: Variant
    window: int
    load: float
    seed: int


@lru_cache(maxsize=64)
def ranked_boxes(extents: tuple[int, ...], allocator: str, options: tuple[tuple[str, Any], ...]) -> RankedBoxes:
    """The boxes of a torus in an allocator's order."""
    return RankedBoxes(extents, make_policy(allocator, dict(options), BoxPolicy))


@lru_cache(maxsize=64)
def workload_of(recipe: Recipe, seed: int) -> Workload:
    """A workload, drawn once for all allocators and windows."""
    return make_workload(recipe, seed)


def recipe_of(setting: Setting) -> Recipe:
    """What the setting's workload is made by."""
    system, variant = setting.system, setting.variant
    other = variant.sizes is not None and system.sizes is Sizes.SMOOTH
    sizes = variant.sizes if other and variant.sizes is not None else system.sizes
    return Recipe(system.nodes, setting.load, sizes, variant.duration_unit)


def run_setting(setting: Setting) -> dict[str, Any]:
    """Run one simulation; its setting and results as one row of a table.

    Columns of results: `utilisation` (node-time asked for / (nodes x time from 0 to the last end)), `allocated` (the
    same with the nodes of the boxes), `relative_wait` (mean of wait / run time), `mean_wait_h`, `jobs`, `refused`.
    """
    system, variant = setting.system, setting.variant
    jobs = workload_of(recipe_of(setting), setting.seed)
    if variant.allocator == NO_TORUS:
        start = flat_window_first_fit(
            jobs.submit_time, jobs.run_time, jobs.run_time, jobs.size, system.nodes, WindowOptions(setting.window)
        )
        schedule = Schedule(jobs.submit_time, start, start + jobs.run_time, jobs.size, jobs.size, system.nodes)
        refused = 0
    else:
        run = run_window_first_fit(
            ranked_boxes(system.extents, variant.allocator, variant.options),
            jobs.submit_time,
            jobs.run_time,
            jobs.size,
            window=setting.window,
            counts=variant.counts,
        )
        schedule, refused = run.schedule, run.refused
    length = schedule.end_time - schedule.start_time
    wait = schedule.start_time - schedule.submit_time
    whole = system.nodes * float(schedule.end_time.max())
    return {
        "system": system.name,
        "nodes": system.nodes,
        "method": variant.label,
        "window": setting.window,
        "load": setting.load,
        "seed": setting.seed,
        "utilisation": float((schedule.size.astype(np.float64) * length).sum()) / whole,
        "allocated": float((schedule.held.astype(np.float64) * length).sum()) / whole,
        "relative_wait": float((wait / length).mean()),
        "mean_wait_h": float(wait.mean()) / MICROSECONDS / 3600,
        "jobs": len(schedule),
        "refused": refused,
    }
