"""One simulation of the Blue Gene/L allocation study: its parameters and its row of results.

Y. Aridor and others, IBM J. Res. & Dev. 49(2/3), 2005, "Simulation environment". Jobs run as long as the log says, also
where that is longer than they asked for; EASY plans with what they asked for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

import numpy as np

from ramp.errors import WorkloadError
from simulation.experiments.result import Column, Columns
from simulation.machine_files import load_machine
from simulation.machines.bluegene.cable_policy import Merit
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Machine, has_cables
from simulation.queueing.job_table import JobTable, jobs_of_log, shaped_jobs
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.workload.logs import find_log
from simulation.workload.metrics import summarise, utilisation_while_arriving
from simulation.workload.shapes import fat_shape
from simulation.workload.swf import read_swf

LOGS: Final = {"CTC": ("CTC-SP2-1996-3.1-cln", 4), "SDSC": ("SDSC-SP2-1998-4.2-cln", 1)}
"""The study's logs: file name, and processors that make one midplane."""
EASY: Final = "easy"
FIRST_FIT: Final = "first-fit"
MULTI_TOROIDAL: Final = "bgl"
PLAIN: Final = "torus3d"
PAPER_FULL_LOAD: Final = {
    ("CTC", MULTI_TOROIDAL): 50.0,
    ("CTC", PLAIN): 26.0,
    ("SDSC", MULTI_TOROIDAL): 46.0,
    ("SDSC", PLAIN): 36.0,
}
"""Utilisation in per cent that the study prints for fat jobs, all tori, at full load."""
SLIM_CASES: Final = ((MULTI_TOROIDAL, 0.0), (MULTI_TOROIDAL, 0.5), (MULTI_TOROIDAL, 1.0), (PLAIN, 1.0))
"""Machine and share of tori of the curves of figure 7(a)."""

RUN_COLUMNS: Final[Columns] = {
    "log": Column("", "CTC: CTC-SP2-1996-3.1-cln, sizes divided by 4; SDSC: SDSC-SP2-1998-4.2-cln"),
    "machine": Column("", "bgl: multi-toroidal Blue Gene/L; torus3d: plain 3D torus; both 8x4x4 midplanes"),
    "scheduler": Column("", "easy: EASY backfilling on requested times; first-fit: over the whole queue"),
    "first_job": Column("jobs", "jobs at the begin of the log that were left out"),
    "allocator": Column("", "two-phase: contiguous boxes, fewest links; noncontiguous: sets with gaps"),
    "fat_probability": Column("", "share of jobs with at least two midplanes in each dimension"),
    "torus_probability": Column("", "share of jobs that are tori; the others are meshes"),
    "load": Column("work / capacity", "offered load: work of the shapes until the last submission / capacity"),
    "broken_share": Column("share of all cables", "out of service from the start"),
    "utilisation": Column("share", "work of the shapes / (128 midplanes x makespan)"),
    "utilisation_while_arriving": Column("share", "the same from the first to the last submission"),
    "utilisation_by_log_sizes": Column("share", "work of the log's sizes / (128 midplanes x makespan)"),
    "mean_wait_s": Column("s", "mean time from submission to start"),
    "mean_bounded_slowdown": Column("", "mean of (wait + run time) / max(run time, 10 s), at least 1"),
    "jobs": Column("jobs", "that ran"),
    "refused": Column("jobs", "that never fit the machine and were left out"),
    "refused_work": Column("share", "of the work: that of the refused jobs"),
}
"""What the columns of `run_setting`'s rows hold."""


@dataclass(frozen=True, slots=True)
class Setting:
    """All that decides one simulation.

    Attributes:
        log: key of `LOGS`.
        machine: name of a machine file.
        fat_probability: share of fat jobs.
        torus_probability: share of tori.
        load: offered load.
        seed: of the drawn shapes, connections and failures.
        max_jobs: number of jobs taken from the log; None = all.
        first_job: number of jobs of the log left out at the beginning.
        sizes_as_fat: every job has the size that fattening would give it, whatever its shape (figure 8).
        load_by_log_sizes: the offered load counts the log's sizes instead of the shapes' volumes.
        round_down: sizes of a divided log are rounded down instead of up.
        allocator: overrules the machine file's.
        merit: of the places that would serve a job.
        broken_share: share of the cables that are out of service.
        scheduler: name of the scheduler; the study calls its own aggressive backfilling.
    """

    log: str
    machine: str
    fat_probability: float
    torus_probability: float
    load: float
    seed: int
    max_jobs: int | None = None
    sizes_as_fat: bool = False
    load_by_log_sizes: bool = False
    round_down: bool = False
    allocator: str | None = None
    merit: Merit = Merit.LINKS
    broken_share: float = 0.0
    first_job: int = 0
    scheduler: str = EASY


def log_sizes(
    log: str, *, max_jobs: int | None = None, round_down: bool = False, first_job: int = 0, divided: bool = True
) -> JobTable:
    """Return the jobs of one of the study's logs; arguments as of `Setting`.

    Sizes are in midplanes, or in processors of the log if they are not to be `divided`.

    Raises:
        WorkloadError: the log is not on this computer.
    """
    if first_job == 0:
        return _log_sizes(log, max_jobs, round_down, divided)
    last = None if max_jobs is None else first_job + max_jobs
    return _log_sizes(log, last, round_down, divided).select(slice(first_job, last))


@cache
def _log_sizes(log: str, max_jobs: int | None, round_down: bool, divided: bool) -> JobTable:
    name, divisor = LOGS[log]
    path = find_log(name)
    if path is None:
        raise WorkloadError(
            f"the log {name} is not on this computer: `ramp logs --fetch {name}`, or name its folder in RAMP_LOGS"
        )
    table = read_swf(path)
    if round_down:
        jobs = jobs_of_log(table, max_jobs=max_jobs)
        return jobs.with_size(np.maximum(jobs.size // divisor, 1))
    return jobs_of_log(table, size_divisor=divisor if divided else 1, max_jobs=max_jobs)


@cache
def _empty_machine(name: str, allocator: str | None, merit: Merit) -> Machine:
    return load_machine(name, allocator=allocator, allocator_options={"merit": merit})


def fat_sizes(jobs: JobTable, extents: tuple[int, ...]) -> JobTable:
    """The same jobs with the sizes that fattening gives them."""
    volumes = []
    for size in jobs.size.tolist():
        shape = fat_shape(size, extents)
        volumes.append(size if shape is None else int(np.prod(shape)))
    return jobs.with_size(np.array(volumes, dtype=np.int64))


def run_setting(setting: Setting) -> dict[str, Any]:
    """Run one simulation; its setting and results as one row of a table.

    Columns of results: `utilisation` (work of the shapes / (128 x makespan)), `utilisation_while_arriving` (until the
    last submission), `utilisation_by_log_sizes` (work of the log's sizes / (128 x makespan)), `mean_wait_s`,
    `mean_bounded_slowdown`, `jobs`, `refused` (jobs that never fit), `refused_work` (their share of the work).
    """
    machine = _empty_machine(setting.machine, setting.allocator, setting.merit).copy()
    if setting.broken_share > 0:
        assert has_cables(machine)
        break_cables(machine, setting.broken_share, setting.seed)
    source = log_sizes(
        setting.log, max_jobs=setting.max_jobs, round_down=setting.round_down, first_job=setting.first_job
    )
    sized = fat_sizes(source, machine.extents) if setting.sizes_as_fat else source
    shape = partial(
        shaped_jobs,
        machine=machine,
        fat_probability=setting.fat_probability,
        torus_probability=setting.torus_probability,
        seed=setting.seed,
    )
    shaped = shape(sized)
    by = sized if setting.load_by_log_sizes else shaped.jobs
    jobs = replace(shaped.jobs, submit_time=by.with_load(machine.capacity, setting.load).submit_time)
    options = SchedulerOptions(setting.scheduler, overrun=Overrun.KEEP)
    run = run_log(machine, jobs, options, requests=shaped.requests)
    summary = summarise(run.schedule)
    all_work = float((jobs.size * jobs.run_time).sum())
    done_work = float((run.jobs.size * run.jobs.run_time).sum())
    log_work = float((source.size * source.run_time).sum())
    return {
        "log": setting.log,
        "machine": setting.machine,
        "scheduler": setting.scheduler,
        "first_job": setting.first_job,
        "allocator": setting.allocator or "two-phase",
        "fat_probability": setting.fat_probability,
        "torus_probability": setting.torus_probability,
        "load": setting.load,
        "seed": setting.seed,
        "broken_share": setting.broken_share,
        "utilisation": summary.utilisation,
        "utilisation_while_arriving": utilisation_while_arriving(run.schedule),
        "utilisation_by_log_sizes": log_work / (machine.capacity * max(run.schedule.makespan, 1)),
        "mean_wait_s": summary.mean_wait_s,
        "mean_bounded_slowdown": summary.mean_bounded_slowdown,
        "jobs": summary.jobs,
        "refused": run.refused,
        "refused_work": 1 - done_work / all_work,
    }


def break_cables(machine: BlueGene, share: float, seed: int) -> int:
    """Take a share of all cables out of service.

    The cables are drawn in one order a seed, so that a larger share breaks those of a smaller share and more.

    Args:
        machine: changed.
        share: 0 to 1 of all cables of all lines.
        seed: of the order.

    Returns:
        Number of cables broken.
    """
    cables = [
        (dimension, machine.grid.line_coordinates(dimension, line), label)
        for dimension in range(len(machine.extents))
        for line in range(machine.grid.line_count(dimension))
        for label in range(len(machine.layout.tables[dimension].wiring.cables))
    ]
    random.Random(f"{seed}/cables").shuffle(cables)
    broken = round(share * len(cables))
    for dimension, line, label in cables[:broken]:
        machine.fail_links(dimension, line, [label])
    return broken
