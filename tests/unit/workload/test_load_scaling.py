"""Offered load: scaling arrivals reaches it and changes nothing else."""

import numpy as np
import pytest

from ramp.errors import WorkloadError
from simulation.queueing.job_table import offered_load, scale_arrivals

SUBMIT = np.array([1000, 2000, 5000, 11_000], dtype=np.int64)
RUN = np.array([400, 100, 700, 300], dtype=np.int64)
SIZE = np.array([10, 30, 20, 5], dtype=np.int64)


def test_offered_load_is_work_over_capacity_and_arrival_time() -> None:
    """(4000 + 3000 + 14000 + 1500) / (100 x 10000)."""
    assert offered_load(SUBMIT, RUN, SIZE, 100) == pytest.approx(0.0225)


@pytest.mark.parametrize("load", [0.005, 0.0225, 0.5])
def test_scaled_arrivals_offer_the_load_and_keep_their_proportions(load: float) -> None:
    """The first arrival stays; gaps keep their ratios 1 : 3 : 6."""
    scaled = scale_arrivals(SUBMIT, RUN, SIZE, 100, load)
    assert scaled[0] == 1000
    assert offered_load(scaled, RUN, SIZE, 100) == pytest.approx(load, rel=0.01)
    gaps = np.diff(scaled)
    assert gaps[1] / gaps[0] == pytest.approx(3, rel=0.02)
    assert gaps[2] / gaps[0] == pytest.approx(6, rel=0.02)


def test_loads_that_make_no_sense_are_refused() -> None:
    """Zero, negative and undefined loads, and jobs that all come at once."""
    for load in (0, -1, float("nan"), float("inf")):
        with pytest.raises(WorkloadError, match="above 0"):
            scale_arrivals(SUBMIT, RUN, SIZE, 100, load)
    for load in (1e-12, 1e-300):  # arrivals that would not fit 64 bits, or only just
        with pytest.raises(WorkloadError, match="at least"):
            scale_arrivals(SUBMIT, RUN, SIZE, 100, load)
    with pytest.raises(WorkloadError, match="units in service"):
        scale_arrivals(SUBMIT, RUN, SIZE, 0, 0.5)
    with pytest.raises(WorkloadError, match="two or more times"):
        scale_arrivals(SUBMIT[:1], RUN[:1], SIZE[:1], 100, 0.5)
