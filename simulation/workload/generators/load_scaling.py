"""Offered load and how to change it: arrivals are stretched or squeezed, jobs stay as they are.

Y. Aridor and others, IBM J. Res. & Dev. 49(2/3), 2005, "Simulation environment": different offered loads come from
scaling the arrival times, while sizes, shapes and run times stay.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from ramp.errors import WorkloadError

Int64Array = NDArray[np.int64]

ARRIVALS_MAX = 10**12
"""Span of the arrivals, in the unit given, above which a load is refused: no simulation wants to last so long."""


def offered_load(submit_time: Int64Array, run_time: Int64Array, size: Int64Array, capacity: int) -> float:
    """Work submitted / (capacity x time from the first to the last submission).

    Args:
        submit_time: any unit, shape (jobs,).
        run_time: same unit, shape (jobs,).
        size: units each job asks for, shape (jobs,).
        capacity: units of the machine.

    Raises:
        WorkloadError: all jobs are submitted at one time, or the machine has no unit: there is no load to speak of.
    """
    if capacity < 1:
        raise WorkloadError("the offered load needs a machine with units in service")
    length = int(submit_time.max() - submit_time.min()) if submit_time.size else 0
    if length <= 0:
        raise WorkloadError("the offered load needs jobs submitted at two or more times")
    return float((size.astype(np.float64) * run_time).sum()) / (capacity * length)


def scale_arrivals(
    submit_time: Int64Array, run_time: Int64Array, size: Int64Array, capacity: int, load: float
) -> Int64Array:
    """Return the submission times that offer the machine a given load; the first submission stays where it is.

    Args:
        submit_time: any unit, shape (jobs,).
        run_time: same unit, shape (jobs,).
        size: units each job asks for, shape (jobs,).
        capacity: units of the machine.
        load: offered load wanted, above 0 (1 = as much work as the machine can do).

    Returns:
        New submission times in the same order and unit, shape (jobs,).

    Raises:
        WorkloadError: the load is not positive, or so small that the arrivals would not fit `ARRIVALS_MAX`, or the
            jobs have none.
    """
    if not load > 0 or not isfinite(load):
        raise WorkloadError(f"load must be above 0, got {load}")
    offered = offered_load(submit_time, run_time, size, capacity)
    first, last = int(submit_time.min()), int(submit_time.max())
    least = (last - first) * offered / ARRIVALS_MAX
    if load < least:
        raise WorkloadError(f"load must be at least {least:.2g} for these jobs, got {load}")
    factor = offered / load
    scaled: Int64Array = first + np.rint((submit_time - first) * factor).astype(np.int64)
    return scaled
