"""Synthetic workload after Lublin and Feitelson: job sizes, run times and arrivals of rigid jobs with a daily cycle.

Source: U. Lublin, D. G. Feitelson, "The Workload on Parallel Supercomputers: Modeling the Characteristics of Rigid
Jobs", J. Parallel and Distributed Computing 63(11), 2003, 1105-1122, with the parameters its authors publish for jobs
of no stated type (batch and interactive together) and a machine of 128 nodes.

- Size: one core with probability `serial`; otherwise 2 to the power of a two-stage uniform variable, which is rounded
  to a whole number with probability `power_of_two` (of all jobs).
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
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from simulation.workload.generators.easy_starts import easy_starts
from simulation.workload.swf import UNKNOWN, SwfLog
from simulation.workload.swf_text import FIELD_COUNT, FIELD_NAMES

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


@dataclass(frozen=True, slots=True)
class LublinParameters:
    """The model's parameters; the defaults are the published ones for jobs of no stated type.

    Attributes:
        serial: share of jobs with one core.
        power_of_two: share of jobs with a power of two, serial ones not counted.
        size_low: log2 of the smallest parallel size, with the published correction for rounding.
        size_medium_below_high: how far the border between the two stages lies below log2 of the machine.
        size_low_stage: probability of the stage of smaller jobs.
        run_shape_1: alpha of the gamma distribution of the shorter run times' logarithms.
        run_scale_1: its beta.
        run_shape_2: alpha for the longer run times.
        run_scale_2: its beta.
        run_share_slope: slope of the first gamma's share over the size, a node of `reference_size`.
        run_share: share of the first gamma for size 0.
        run_log_max: largest logarithm of a run time, drawn again above; 12 is 45 hours.
        gap_shape: alpha of the gamma distribution of the gaps' logarithms, at rush hours.
        gap_scale: its beta.
        gap_rush_ratio: factor on `gap_shape` for all hours.
        gap_log_max: largest logarithm of a gap, drawn again above; 13 is five days.
        cycle_shape: alpha of the gamma distribution over the day's half-hours.
        cycle_scale: its beta.
        cycle_begin: the half-hour (counted from 1 at midnight) at which that distribution begins.
        reference_size: nodes of the machine that the parameters are published for.
    """

    serial: float = 0.244
    power_of_two: float = 0.576
    size_low: float = 0.8
    size_medium_below_high: float = 2.5
    size_low_stage: float = 0.86
    run_shape_1: float = 4.2
    run_scale_1: float = 0.94
    run_shape_2: float = 312.0
    run_scale_2: float = 0.03
    run_share_slope: float = -0.0054
    run_share: float = 0.78
    run_log_max: float = 12.0
    gap_shape: float = 10.2303
    gap_scale: float = 0.4871
    gap_rush_ratio: float = 1.0225
    gap_log_max: float = 13.0
    cycle_shape: float = 8.1737
    cycle_scale: float = 3.9631
    cycle_begin: int = 11
    reference_size: int = 128


PUBLISHED: Final = LublinParameters()


def job_sizes(
    generator: np.random.Generator, count: int, machine_cores: int, parameters: LublinParameters = PUBLISHED
) -> Int64Array:
    """Draw sizes.

    Args:
        generator: the random source.
        count: number of jobs.
        machine_cores: cores of the machine.
        parameters: the model's parameters.

    Returns:
        Shape (count,), 1 to `machine_cores`.
    """
    high = math.log2(machine_cores)
    low = min(parameters.size_low, high)
    medium = max(low, high - parameters.size_medium_below_high)
    kind = generator.random(count)
    in_low_stage = generator.random(count) <= parameters.size_low_stage
    place = generator.random(count)
    power = np.where(in_low_stage, low + place * (medium - low), medium + place * (high - medium))
    is_power_of_two = kind <= parameters.serial + parameters.power_of_two
    power = np.where(is_power_of_two, np.floor(power + 0.5), power)
    sizes = np.where(kind <= parameters.serial, 1, np.floor(np.exp2(power) + 0.5))
    return np.clip(sizes, 1, machine_cores).astype(np.int64)


def run_times(
    generator: np.random.Generator, sizes: Int64Array, machine_cores: int, parameters: LublinParameters = PUBLISHED
) -> Int64Array:
    """Draw run times for jobs of given sizes.

    Args:
        generator: the random source.
        sizes: shape (jobs,), cores.
        machine_cores: cores of the machine.
        parameters: the model's parameters.

    Returns:
        Shape (jobs,), whole seconds, at least 1.
    """
    relative = sizes * (parameters.reference_size / machine_cores)
    share = np.clip(parameters.run_share_slope * relative + parameters.run_share, 0, 1)
    logarithms = np.empty(len(sizes))
    missing = np.arange(len(sizes))
    while missing.size:
        first = generator.random(missing.size) <= share[missing]
        shape = np.where(first, parameters.run_shape_1, parameters.run_shape_2)
        scale = np.where(first, parameters.run_scale_1, parameters.run_scale_2)
        logarithms[missing] = generator.gamma(shape, scale)
        missing = missing[logarithms[missing] > parameters.run_log_max]
    return np.maximum(np.exp(logarithms), 1).astype(np.int64)


def gaps(generator: np.random.Generator, count: int, parameters: LublinParameters = PUBLISHED) -> Float64Array:
    """Draw gaps between arrivals on the daily cycle's clock.

    Args:
        generator: the random source.
        count: number of gaps.
        parameters: the model's parameters.

    Returns:
        Shape (count,), seconds.
    """
    logarithms = np.full(count, np.inf)
    missing = np.arange(count)
    while missing.size:
        shape = parameters.gap_shape * parameters.gap_rush_ratio
        logarithms[missing] = generator.gamma(shape, parameters.gap_scale, missing.size)
        missing = missing[logarithms[missing] > parameters.gap_log_max]
    seconds: Float64Array = np.exp(logarithms)
    return seconds


def cycle_weights(parameters: LublinParameters = PUBLISHED) -> Float64Array:
    """Return how fast the daily cycle's clock runs in each half-hour.

    Args:
        parameters: the model's parameters.

    Returns:
        Shape (48,), from midnight; the mean is 1.
    """
    # The distribution function's differences over half-hours, by Simpson's rule on the density: only ratios matter.
    steps = 64
    half_hours = np.arange(parameters.cycle_begin, parameters.cycle_begin + HALF_HOURS_A_DAY)
    points = half_hours[:, None] - 0.5 + np.arange(steps + 1) / steps
    logarithms = (parameters.cycle_shape - 1) * np.log(points) - points / parameters.cycle_scale
    density = np.exp(logarithms - logarithms.max())
    simpson = np.where(np.arange(steps + 1) % 2, 4.0, 2.0)
    simpson[[0, -1]] = 1.0
    weights = np.empty(HALF_HOURS_A_DAY)
    weights[(half_hours - 1) % HALF_HOURS_A_DAY] = density @ simpson
    scaled: Float64Array = weights / weights.mean()
    return scaled


def arrival_times(cycle_gaps: Float64Array, parameters: LublinParameters = PUBLISHED) -> Int64Array:
    """Turn gaps on the daily cycle's clock into times of arrival.

    Args:
        cycle_gaps: shape (jobs,), seconds on the cycle's clock.
        parameters: the model's parameters.

    Returns:
        Shape (jobs,), whole seconds from a midnight, ascending.
    """
    passed = np.cumsum(cycle_gaps) / HALF_HOUR_S
    clock = np.concatenate(([0.0], np.cumsum(cycle_weights(parameters))))
    day, within = np.divmod(passed, HALF_HOURS_A_DAY)
    of_day = np.interp(within, clock, np.arange(HALF_HOURS_A_DAY + 1) * float(HALF_HOUR_S))
    arrivals: Int64Array = np.floor(day * DAY_S + of_day).astype(np.int64)
    return arrivals


def synthetic_log(
    machine_cores: int,
    duration_s: int,
    seed: int,
    *,
    load: float = DEFAULT_LOAD,
    parameters: LublinParameters = PUBLISHED,
) -> SwfLog:
    """Make a workload for a machine, with starts as an EASY backfilling scheduler would give them.

    Args:
        machine_cores: cores of the machine.
        duration_s: seconds over which jobs arrive, at least a day.
        seed: the same seed gives the same log.
        load: core seconds of the jobs over those of the machine in that time, above 0.
        parameters: the model's parameters.

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
    sizes, runs = _jobs_of_area(for_jobs, load * machine_cores * duration_s, machine_cores, parameters)
    cycle_gaps = gaps(for_gaps, len(sizes), parameters)
    submitted = arrival_times(cycle_gaps * (duration_s / cycle_gaps.sum()), parameters)
    longest = math.ceil(math.exp(parameters.run_log_max) / 60) * 60
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


def _jobs_of_area(
    generator: np.random.Generator, area: float, machine_cores: int, parameters: LublinParameters
) -> tuple[Int64Array, Int64Array]:
    sizes: list[Int64Array] = []
    runs: list[Int64Array] = []
    total = 0.0
    while total < area:
        sizes.append(job_sizes(generator, _CHUNK, machine_cores, parameters))
        runs.append(run_times(generator, sizes[-1], machine_cores, parameters))
        total += float(np.dot(sizes[-1].astype(np.float64), runs[-1]))
        if len(sizes) * _CHUNK > _LONGEST_JOBS:
            raise WorkloadError(f"a synthetic log may have at most {_LONGEST_JOBS} jobs; reduce its length or load")
    all_sizes: Int64Array = np.concatenate(sizes)
    all_runs: Int64Array = np.concatenate(runs)
    enough = int(np.searchsorted(np.cumsum(all_sizes.astype(np.float64) * all_runs), area)) + 1
    return all_sizes[:enough], all_runs[:enough]
