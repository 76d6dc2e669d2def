"""Synthetic workload after Lublin and Feitelson: job sizes, run times and arrivals of rigid jobs with a daily cycle.

Source: U. Lublin, D. G. Feitelson, "The Workload on Parallel Supercomputers: Modeling the Characteristics of Rigid
Jobs", J. Parallel and Distributed Computing 63(11), 2003, 1105-1122, with the parameters its authors publish for jobs
of no stated type (batch and interactive together) and a machine of 128 nodes.

- Size: one core with probability `SERIAL`; otherwise 2 to the power of a two-stage uniform variable, which is rounded
  to a whole number with probability `POWER_OF_TWO` (of all jobs).
- Run time: its natural logarithm is hyper-gamma distributed, with a share of the first gamma that falls with the size.
- Arrivals: the natural logarithm of the gaps is gamma distributed, in units of a clock that runs by the daily cycle,
  whose half-hours have the weights of another gamma distribution.

Fitted to a machine: the largest size is the machine's, the middle of the two stages lies as far below it as published
(2.5 powers of two), the size in the run time's share is taken relative to the machine (128 nodes in the publication),
and the gaps are stretched so that the jobs offer the load wanted. With 128 cores the size and the run time are exactly
the published model's.

The model has no requested times: they are the run time divided by a uniform variable from (0, 1], in whole minutes and
at most the model's longest run time. Starts come from `simulation.workload.generators.easy_starts`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from simulation.workload.generators.easy_starts import easy_starts
from simulation.workload.swf import FIELD_COUNT, FIELD_NAMES, UNKNOWN, SwfLog

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]

HALF_HOURS_A_DAY: Final = 48
HALF_HOUR_S: Final = 1800
DAY_S: Final = 86_400
DEFAULT_LOAD: Final = 0.7
"""Offered load of stand-in workloads: what production machines of the archive come to."""
USERS: Final = 64
"""Users among whom the jobs are dealt out; the model knows none."""
_CHUNK: Final = 4096
_LONGEST_JOBS: Final = 2_000_000

# The published parameters for jobs of no stated type
SERIAL: Final = 0.244
"""Share of jobs with one core."""
POWER_OF_TWO: Final = 0.576
"""Share of jobs with a power of two, serial ones not counted."""
SIZE_LOW: Final = 0.8
"""Log2 of the smallest parallel size, with the published correction for rounding."""
SIZE_MEDIUM_BELOW_HIGH: Final = 2.5
"""How far the border between the two stages lies below log2 of the machine."""
SIZE_LOW_STAGE: Final = 0.86
"""Probability of the stage of smaller jobs."""
RUN_SHAPE_1: Final = 4.2
"""Alpha of the gamma distribution of the shorter run times' logarithms."""
RUN_SCALE_1: Final = 0.94
"""Its beta."""
RUN_SHAPE_2: Final = 312.0
"""Alpha for the longer run times."""
RUN_SCALE_2: Final = 0.03
"""Its beta."""
RUN_SHARE_SLOPE: Final = -0.0054
"""Slope of the first gamma's share over the size, a node of `REFERENCE_SIZE`."""
RUN_SHARE: Final = 0.78
"""Share of the first gamma for size 0."""
RUN_LOG_MAX: Final = 12.0
"""Largest logarithm of a run time, drawn again above; 12 is 45 hours."""
GAP_SHAPE: Final = 10.2303
"""Alpha of the gamma distribution of the gaps' logarithms, at rush hours."""
GAP_SCALE: Final = 0.4871
"""Its beta."""
GAP_RUSH_RATIO: Final = 1.0225
"""Factor on `GAP_SHAPE` for all hours."""
GAP_LOG_MAX: Final = 13.0
"""Largest logarithm of a gap, drawn again above; 13 is five days."""
CYCLE_SHAPE: Final = 8.1737
"""Alpha of the gamma distribution over the day's half-hours."""
CYCLE_SCALE: Final = 3.9631
"""Its beta."""
CYCLE_BEGIN: Final = 11
"""The half-hour (counted from 1 at midnight) at which that distribution begins."""
REFERENCE_SIZE: Final = 128
"""Nodes of the machine that the parameters are published for."""


def job_sizes(generator: np.random.Generator, count: int, machine_cores: int) -> Int64Array:
    """Draw sizes.

    Args:
        generator: the random source.
        count: number of jobs.
        machine_cores: cores of the machine.

    Returns:
        Shape (count,), 1 to `machine_cores`.
    """
    high = math.log2(machine_cores)
    low = min(SIZE_LOW, high)
    medium = max(low, high - SIZE_MEDIUM_BELOW_HIGH)
    kind = generator.random(count)
    in_low_stage = generator.random(count) <= SIZE_LOW_STAGE
    place = generator.random(count)
    power = np.where(in_low_stage, low + place * (medium - low), medium + place * (high - medium))
    is_power_of_two = kind <= SERIAL + POWER_OF_TWO
    power = np.where(is_power_of_two, np.floor(power + 0.5), power)
    sizes = np.where(kind <= SERIAL, 1, np.floor(np.exp2(power) + 0.5))
    return np.clip(sizes, 1, machine_cores).astype(np.int64)


def run_times(generator: np.random.Generator, sizes: Int64Array, machine_cores: int) -> Int64Array:
    """Draw run times for jobs of given sizes.

    Args:
        generator: the random source.
        sizes: shape (jobs,), cores.
        machine_cores: cores of the machine.

    Returns:
        Shape (jobs,), whole seconds, at least 1.
    """
    relative = sizes * (REFERENCE_SIZE / machine_cores)
    share = np.clip(RUN_SHARE_SLOPE * relative + RUN_SHARE, 0, 1)
    logarithms = np.empty(len(sizes))
    missing = np.arange(len(sizes))
    while missing.size:
        first = generator.random(missing.size) <= share[missing]
        shape = np.where(first, RUN_SHAPE_1, RUN_SHAPE_2)
        scale = np.where(first, RUN_SCALE_1, RUN_SCALE_2)
        logarithms[missing] = generator.gamma(shape, scale)
        missing = missing[logarithms[missing] > RUN_LOG_MAX]
    return np.maximum(np.exp(logarithms), 1).astype(np.int64)


def gaps(generator: np.random.Generator, count: int) -> Float64Array:
    """Draw gaps between arrivals on the daily cycle's clock.

    Args:
        generator: the random source.
        count: number of gaps.

    Returns:
        Shape (count,), seconds.
    """
    logarithms = np.full(count, np.inf)
    missing = np.arange(count)
    while missing.size:
        shape = GAP_SHAPE * GAP_RUSH_RATIO
        logarithms[missing] = generator.gamma(shape, GAP_SCALE, missing.size)
        missing = missing[logarithms[missing] > GAP_LOG_MAX]
    seconds: Float64Array = np.exp(logarithms)
    return seconds


def cycle_weights() -> Float64Array:
    """Return how fast the daily cycle's clock runs in each half-hour.

    Returns:
        Shape (48,), from midnight; the mean is 1.
    """
    # The distribution function's differences over half-hours, by Simpson's rule on the density: only ratios matter.
    steps = 64
    half_hours = np.arange(CYCLE_BEGIN, CYCLE_BEGIN + HALF_HOURS_A_DAY)
    points = half_hours[:, None] - 0.5 + np.arange(steps + 1) / steps
    logarithms = (CYCLE_SHAPE - 1) * np.log(points) - points / CYCLE_SCALE
    density = np.exp(logarithms - logarithms.max())
    simpson = np.where(np.arange(steps + 1) % 2, 4.0, 2.0)
    simpson[[0, -1]] = 1.0
    weights = np.empty(HALF_HOURS_A_DAY)
    weights[(half_hours - 1) % HALF_HOURS_A_DAY] = density @ simpson
    scaled: Float64Array = weights / weights.mean()
    return scaled


def arrival_times(cycle_gaps: Float64Array) -> Int64Array:
    """Turn gaps on the daily cycle's clock into times of arrival.

    Args:
        cycle_gaps: shape (jobs,), seconds on the cycle's clock.

    Returns:
        Shape (jobs,), whole seconds from a midnight, ascending.
    """
    passed = np.cumsum(cycle_gaps) / HALF_HOUR_S
    clock = np.concatenate(([0.0], np.cumsum(cycle_weights())))
    day, within = np.divmod(passed, HALF_HOURS_A_DAY)
    of_day = np.interp(within, clock, np.arange(HALF_HOURS_A_DAY + 1) * float(HALF_HOUR_S))
    arrivals: Int64Array = np.floor(day * DAY_S + of_day).astype(np.int64)
    return arrivals


def synthetic_log(machine_cores: int, duration_s: int, seed: int, *, load: float = DEFAULT_LOAD) -> SwfLog:
    """Make a workload for a machine, with starts as an EASY backfilling scheduler would give them.

    Args:
        machine_cores: cores of the machine.
        duration_s: seconds over which jobs arrive, at least a day.
        seed: the same seed gives the same log.
        load: core seconds of the jobs over those of the machine in that time, above 0.

    Returns:
        A log whose comments name model, seed and fit.

    Raises:
        WorkloadError: an argument is out of range.
    """
    if machine_cores < 1 or duration_s < DAY_S or load <= 0:
        raise WorkloadError(
            f"a synthetic log needs at least 1 core, one day ({DAY_S} s) and a load above 0, "
            f"got {machine_cores} cores, {duration_s} s and load {load}"
        )
    for_jobs, for_gaps, for_requests, for_users = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(4)
    )
    sizes, runs = _jobs_of_area(for_jobs, load * machine_cores * duration_s, machine_cores)
    cycle_gaps = gaps(for_gaps, len(sizes))
    submitted = arrival_times(cycle_gaps * (duration_s / cycle_gaps.sum()))
    longest = math.ceil(math.exp(RUN_LOG_MAX) / 60) * 60
    accuracy = 1 - for_requests.random(len(sizes))
    requested = np.minimum(np.ceil(runs / accuracy / 60) * 60, longest).astype(np.int64)
    started = easy_starts(submitted, sizes, runs, requested, machine_cores)
    columns = np.full((FIELD_COUNT, len(sizes)), UNKNOWN, dtype=np.int64)
    for name, values in (
        ("job_number", np.arange(1, len(sizes) + 1)),
        ("submit_time", submitted),
        ("wait_time", started - submitted),
        ("run_time", runs),
        ("allocated_processors", sizes),
        ("requested_processors", sizes),
        ("requested_time", requested),
        ("status", np.ones(len(sizes), dtype=np.int64)),
        ("user_id", for_users.integers(1, USERS + 1, len(sizes))),
    ):
        columns[FIELD_NAMES.index(name)] = values
    comments = (
        " Version: 2.2",
        " Computer: synthetic",
        f" MaxJobs: {len(sizes)}",
        f" MaxProcs: {machine_cores}",
        " Note: Lublin-Feitelson model (2003), jobs of no stated type, EASY backfilling",
        f" Note: seed {seed}, offered load {load}, {duration_s} s",
    )
    return SwfLog(columns, comments)


def _jobs_of_area(generator: np.random.Generator, area: float, machine_cores: int) -> tuple[Int64Array, Int64Array]:
    sizes: list[Int64Array] = []
    runs: list[Int64Array] = []
    total = 0.0
    while total < area:
        sizes.append(job_sizes(generator, _CHUNK, machine_cores))
        runs.append(run_times(generator, sizes[-1], machine_cores))
        total += float(np.dot(sizes[-1].astype(np.float64), runs[-1]))
        if len(sizes) * _CHUNK > _LONGEST_JOBS:
            raise WorkloadError(f"a synthetic log may have at most {_LONGEST_JOBS} jobs; reduce its length or load")
    all_sizes: Int64Array = np.concatenate(sizes)
    all_runs: Int64Array = np.concatenate(runs)
    enough = int(np.searchsorted(np.cumsum(all_sizes.astype(np.float64) * all_runs), area)) + 1
    return all_sizes[:enough], all_runs[:enough]
