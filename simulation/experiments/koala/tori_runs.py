"""One simulation of malleable jobs on a torus, or of the same jobs on a flat machine of as many units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from simulation.experiments.bluegene.runs import log_sizes
from simulation.machine_files import FLAT_PREFIX, load_machine
from simulation.machines.interface import JobRequest, Machine
from simulation.malleable.assignment import assigned_malleability
from simulation.malleable.malleability import ResizeCost
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.shaped_jobs import ShapedJobs, shaped_jobs
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.workload.metrics import summarise

HOUR_S: Final = 3600
MACHINES: Final = {"bgl": "SDSC", "torus3d": "SDSC", "angara-4x4x4": "SDSC"}
"""Machines and the log of each; sizes are divided where the machine is smaller than the log's."""
CASES: Final = {"slim meshes": (0.0, 0.0), "slim tori": (0.0, 1.0), "fat tori": (0.5, 1.0)}
"""Shares of jobs with at least two units in each dimension, and of tori (Aridor and others 2005)."""
ANY_BOX: Final = "any box"
"""The case of machines whose jobs ask for no shape."""
LOG_UNITS: Final = 128
"""Processors of the machine of the log, each of them a unit."""


@dataclass(frozen=True, slots=True)
class ToriSetting:
    """All that decides one simulation.

    Attributes:
        machine: name in `MACHINES`.
        case: name in `CASES`, or `ANY_BOX`.
        flat: the same jobs run on a flat machine of as many units, where only their number counts.
        share: probability that a job is malleable.
        load: offered load, of the shapes.
        jobs: number of jobs taken from the beginning of the log.
        seed: of shapes, connections and speed-ups; jobs that are malleable at a share are so at every larger one.
        suspension_s: for how long a job stands still at every change of its size, seconds.
    """

    machine: str
    case: str
    flat: bool
    share: float
    load: float
    jobs: int
    seed: int
    suspension_s: int = 0


def cases_of(machine: str) -> tuple[str, ...]:
    """The cases in which a machine is tried."""
    return (ANY_BOX,) if machine.startswith("angara") else tuple(CASES)


@cache
def _empty_machine(name: str) -> Machine:
    return load_machine(name)


def run_tori_setting(setting: ToriSetting) -> dict[str, Any]:
    """Run one simulation; setting and measures as one row.

    Raises:
        WorkloadError: the log is not on this computer.
    """
    torus = _empty_machine(setting.machine)
    shaped = _shaped(setting, torus)
    machine, requests = torus.copy(), shaped.requests
    if setting.flat:
        machine = load_machine(f"{FLAT_PREFIX}{torus.capacity}")
        requests = tuple(JobRequest(request.job_id, request.size) for request in requests)
    run = run_log(
        machine,
        shaped.jobs,
        SchedulerOptions("malleable", overrun=Overrun.KEEP),
        requests=requests,
        malleability=assigned_malleability(
            [request.size for request in requests],
            torus.capacity,
            setting.share,
            np.random.default_rng(setting.seed),
            ResizeCost(suspension=setting.suspension_s * 1_000_000),
        ),
    )
    schedule, measures = run.schedule, summarise(run.schedule)
    turnaround = (schedule.end_time - schedule.submit_time) / 1e6
    return {
        "machine": setting.machine,
        "case": setting.case,
        "places": "no" if setting.flat else "yes",
        "share": setting.share,
        "load": setting.load,
        "seed": setting.seed,
        "suspension_s": setting.suspension_s,
        "turnaround_h": float(turnaround.mean()) / HOUR_S,
        "wait_h": measures.mean_wait_s / HOUR_S,
        "makespan_h": schedule.makespan / 1e6 / HOUR_S,
        "utilisation": measures.utilisation,
        "changed_jobs": 0 if schedule.pieces is None else len(np.unique(schedule.pieces.job)),
        "jobs": measures.jobs,
        "refused": run.refused,
    }


def _shaped(setting: ToriSetting, machine: Machine) -> ShapedJobs:
    jobs = log_sizes(MACHINES[setting.machine], max_jobs=setting.jobs)
    divisor = max(LOG_UNITS // machine.capacity, 1)
    fat, tori = CASES.get(setting.case, (0.0, 0.0))
    return shaped_jobs(
        jobs.with_size(-(-jobs.size // divisor)),
        machine,
        fat_probability=fat,
        torus_probability=tori,
        seed=setting.seed,
        any_shape=setting.case == ANY_BOX,
    ).with_load(machine.capacity, setting.load)
