"""One simulation of the Angara allocation study: its parameters and its row of results.

A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 3. Jobs run as long as they ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from ramp.model.instant import SECOND
from simulation.machines.allocator_declaration import make_policy
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.queueing.box_window import run_window_first_fit
from simulation.workload.generators.angara_workload import Recipe, Workload, make_workload
from simulation.workload.metrics import Schedule


@dataclass(frozen=True, slots=True)
class System:
    """A torus, and whether its jobs have the sizes seen on Desmos."""

    extents: tuple[int, ...]
    desmos: bool = False

    @property
    def name(self) -> str:
        """As in the tables."""
        shape = "x".join(map(str, self.extents))
        return f"{shape} Desmos" if self.desmos else shape

    @property
    def nodes(self) -> int:
        """Of the torus."""
        return prod(self.extents)


SYSTEMS: Final = (
    System((4, 4, 2)), System((4, 2, 2, 2)), System((4, 3, 3)), System((3, 3, 2, 2)), System((4, 4, 4)),
    System((4, 4, 2, 2)), System((6, 4, 4)), System((4, 4, 3, 2)), System((8, 6, 3)), System((4, 4, 3, 3)),
    System((4, 4, 2), desmos=True), System((4, 2, 2, 2), desmos=True),
)  # fmt: skip
"""The study's ten systems, and its smallest two with the sizes seen on Desmos."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An allocator with its options.

    Attributes:
        label: as in the tables.
        allocator: its name.
        options: of the allocator, as (name, value).
    """

    label: str
    allocator: str
    options: tuple[tuple[str, Any], ...] = ()


BASE: Final = Variant("base as printed", "base")
BASE_NO_WRAP: Final = Variant("base-no-wrap (smallest volume)", "base-no-wrap")
BASE_RING: Final = Variant("base-ring (assumed handicap)", "base-ring")
BASES: Final = (BASE_NO_WRAP, BASE, BASE_RING)
FIND_SYSTEMS: Final = Variant("find-systems", "find-systems")
MSS: Final = Variant("find-systems-mss", "find-systems-mss")
METHODS: Final = (*BASES, FIND_SYSTEMS, MSS)


@dataclass(frozen=True, slots=True)
class Setting:
    """All that decides one simulation.

    Attributes:
        system: the machine and its sizes.
        variant: the allocator.
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
    return Recipe(setting.system.nodes, setting.load, setting.system.desmos)


def run_setting(setting: Setting) -> dict[str, Any]:
    """Run one simulation; its setting and results as one row of a table, as of `row_of`."""
    jobs = workload_of(recipe_of(setting), setting.seed)
    boxes = ranked_boxes(setting.system.extents, setting.variant.allocator, setting.variant.options)
    run = run_window_first_fit(boxes, jobs.submit_time, jobs.run_time, jobs.size, window=setting.window)
    return row_of(setting, run.schedule, run.refused)


def row_of(setting: Setting, schedule: Schedule, refused: int = 0) -> dict[str, Any]:
    """A setting and its results as one row of a table.

    Columns of results: `utilisation` (node-time asked for / (nodes x time from 0 to the last end)), `allocated` (the
    same with the nodes of the boxes), `relative_wait` (mean of wait / run time), `mean_wait_h`, `jobs`, `refused`.
    """
    system, variant = setting.system, setting.variant
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
        "mean_wait_h": float(wait.mean()) / SECOND / 3600,
        "jobs": len(schedule),
        "refused": refused,
    }
