"""The synthetic workloads of the 2019 Angara allocation study.

A. V. Mukosey and others, Vestnik YuUrGU, Comp. Math. & Inf. 8(1), 2019, section 3.2. Printed are: durations by a law of
two parts with a maximum of 24 hours (figure 4), uniform arrivals over 30 days with the sizes seen on Desmos and over
120 days else, and that sizes are mostly powers of two (figure 3). Not printed are the shares of the sizes and the
number of jobs. Here sizes are 2^a and 3 * 2^a, and 18, 36 and 72, as the axes of figure 3 show them, a power of two
four times as likely as another size of its magnitude, with shares that fall with the square root of the size. The
shares of the Desmos sizes are an assumption, and the number of jobs follows from the load wanted.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError
from ramp.model.instant import SECOND

Int64Array = NDArray[np.int64]

DAY_S: Final = 86_400
DURATION_MAX_S: Final = DAY_S
"""Longest duration that Desmos allows."""
BORDER_PERCENTILE: Final = 90.0
"""Where the law of the durations changes from exponential to linear."""
SHARE_AT_ZERO: Final = 0.0001
SHARE_AT_BORDER: Final = 0.99
"""Durations at percentile 0 and at the border, as shares of the maximum."""
HORIZON_DESMOS_S: Final = 30 * DAY_S
HORIZON_S: Final = 120 * DAY_S
POWER_OF_TWO_WEIGHT: Final = 4.0
SMOOTH_SIZES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32, 36, 48, 64, 72, 96, 128, 144)
"""Sizes that occur, up to the machine's."""
DESMOS_SHARES: Final[Mapping[int, float]] = {1: 40, 2: 15, 3: 3, 4: 17, 6: 3, 8: 12, 16: 7, 32: 3}
"""Assumed shares in per cent of the sizes seen on Desmos."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides a workload but the seed.

    Attributes:
        nodes: of the machine.
        load: node-time requested / (nodes x horizon); decides the number of jobs.
        desmos: sizes are as seen on Desmos, a machine of 32 nodes; else mostly powers of two, falling with the size.
    """

    nodes: int
    load: float
    desmos: bool = False

    @property
    def horizon_s(self) -> int:
        """Seconds over which jobs arrive."""
        return HORIZON_DESMOS_S if self.desmos else HORIZON_S

    @property
    def shares(self) -> dict[int, float]:
        """Probability of each size."""
        if self.desmos:
            weights = {size: share for size, share in DESMOS_SHARES.items() if size <= self.nodes}
        else:
            weights = {
                size: (1.0 if size & (size - 1) else POWER_OF_TWO_WEIGHT) / math.sqrt(size)
                for size in SMOOTH_SIZES
                if size <= self.nodes
            }
        total = sum(weights.values())
        return {size: weight / total for size, weight in weights.items()}

    @property
    def jobs(self) -> int:
        """Number of jobs: the load over the mean node-time of a job."""
        mean_size = sum(size * share for size, share in self.shares.items())
        return round(self.load * self.nodes * self.horizon_s / (mean_size * mean_duration_s()))


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Jobs by columns in order of arrival; times in microseconds.

    Attributes:
        submit_time: ascending, shape (jobs,).
        run_time: shape (jobs,); it is also the requested time.
        size: nodes asked for, shape (jobs,).
    """

    submit_time: Int64Array
    run_time: Int64Array
    size: Int64Array

    def __len__(self) -> int:
        return int(self.size.size)


def duration_s(percentile: float) -> float:
    """Return the duration below which that many per cent of the jobs lie (figure 4), in seconds.

    Raises:
        WorkloadError: the percentile is not one.
    """
    if not 0 <= percentile <= 100:
        raise WorkloadError(f"percentile must be 0 to 100, got {percentile}")
    if percentile < BORDER_PERCENTILE:
        exponent = math.log10(SHARE_AT_BORDER / SHARE_AT_ZERO) * percentile / BORDER_PERCENTILE
        return DURATION_MAX_S * SHARE_AT_ZERO * 10**exponent
    beyond = (percentile - BORDER_PERCENTILE) / (100 - BORDER_PERCENTILE)
    return DURATION_MAX_S * (SHARE_AT_BORDER + (1 - SHARE_AT_BORDER) * beyond)


def mean_duration_s() -> float:
    """Return the mean of the law of the durations, in seconds: the integral of both parts."""
    first = (SHARE_AT_BORDER - SHARE_AT_ZERO) / math.log(SHARE_AT_BORDER / SHARE_AT_ZERO)
    second = (SHARE_AT_BORDER + 1) / 2
    border = BORDER_PERCENTILE / 100
    return DURATION_MAX_S * (border * first + (1 - border) * second)


def make_workload(recipe: Recipe, seed: int) -> Workload:
    """Draw a workload. Arrivals, sizes and durations have streams of their own, one number a job each.

    Raises:
        WorkloadError: the recipe makes no job, or its sizes do not go with the machine.
    """
    if recipe.load <= 0 or recipe.nodes < 1:
        raise WorkloadError(f"a load of {recipe.load} on {recipe.nodes} nodes gives no job; raise the load")
    count = recipe.jobs
    if count < 1:
        raise WorkloadError(f"a load of {recipe.load} on {recipe.nodes} nodes gives less than one job; raise the load")
    arrivals, sizes, durations = (random.Random(f"{seed}/angara/{part}") for part in ("arrivals", "sizes", "durations"))
    horizon = recipe.horizon_s * SECOND
    submit_time = sorted(int(arrivals.random() * horizon) for _ in range(count))
    values = list(recipe.shares)
    bounds = list(accumulate(recipe.shares.values()))
    bounds[-1] = 1.0  # the sum of shares may fall short of 1 by a rounding error
    size = [values[bisect_left(bounds, sizes.random())] for _ in range(count)]
    run_time = [round(duration_s(100 * durations.random()) * SECOND) for _ in range(count)]
    return Workload(np.array(submit_time, np.int64), np.array(run_time, np.int64), np.array(size, np.int64))
