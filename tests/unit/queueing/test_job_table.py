"""Which jobs of a log are simulated, and with which times and sizes."""

import numpy as np
import pytest

from ramp.errors import WorkloadError
from simulation.queueing.job_table import jobs_of_log, offered_load, scale_arrivals
from simulation.workload.swf import SwfLog, parse_swf


def log_of(*lines: str) -> SwfLog:
    return parse_swf("\n".join(lines).encode())


def line(number: int, submit: int, run: int, allocated: int, *, asked: int = -1, requested: int = -1) -> str:
    return f"{number} {submit} 0 {run} {allocated} -1 -1 {asked} {requested} -1 1 1 1 1 1 1 -1 -1"


def test_jobs_that_never_ran_are_left_out_and_the_others_sorted() -> None:
    """Unknown submission, run time or processors: out. Run time 0: in. Order: submission, then the log's."""
    jobs = jobs_of_log(
        log_of(
            line(1, 50, 10, 4),
            line(2, 20, -1, 4),
            line(3, 20, 10, -1),
            line(4, 20, 0, 2),
            line(5, 20, 7, 0, asked=3),
            line(6, -1, 10, 4),
        )
    )
    assert jobs.job_number.tolist() == [4, 5, 1]
    assert jobs.size.tolist() == [2, 3, 4]
    assert jobs.submit_time.tolist() == [20_000_000, 20_000_000, 50_000_000]
    assert jobs.line.tolist() == [3, 4, 0]


@pytest.mark.parametrize(
    "long", [line(2, 0, 9_223_372_036_854, 1), line(2, 10**17, 1, 1), line(2, 0, 1, 1, requested=10**17)]
)
def test_times_that_do_not_fit_64_bits_of_microseconds_are_refused(long: str) -> None:
    """They would wrap around to times in the past without a word."""
    with pytest.raises(WorkloadError, match="job 2: submitted at"):
        jobs_of_log(log_of(line(1, 5, 10, 4), long))


def test_an_unknown_request_is_taken_as_the_run_time() -> None:
    """A stated request stands, even where the job outran it."""
    jobs = jobs_of_log(log_of(line(1, 0, 100, 1, requested=60), line(2, 1, 100, 1)))
    assert jobs.requested_time.tolist() == [60_000_000, 100_000_000]


def test_sizes_are_divided_and_rounded_up() -> None:
    """The 2005 study's CTC log: processors / 4."""
    jobs = jobs_of_log(log_of(*(line(size, size, 1, size) for size in (1, 4, 5, 338))), size_divisor=4)
    assert jobs.size.tolist() == [1, 1, 2, 85]


def test_only_the_first_submitted_jobs_are_taken() -> None:
    """--max-jobs counts jobs that can be simulated, by submission."""
    jobs = jobs_of_log(log_of(line(1, 9, 5, 1), line(2, 3, -1, 1), line(3, 4, 5, 1), line(4, 5, 5, 1)), max_jobs=2)
    assert jobs.job_number.tolist() == [3, 4]


def test_load_is_reached_on_whole_seconds() -> None:
    """Scaled arrivals offer the load wanted and can be written to a log."""
    jobs = jobs_of_log(log_of(*(line(number, 1000 * number, 600, 8) for number in range(1, 30))))
    scaled = jobs.with_load(16, 0.8)
    assert not (scaled.submit_time % 1_000_000).any()
    assert offered_load(scaled.submit_time, scaled.run_time, scaled.size, 16) == pytest.approx(0.8, rel=1e-3)
    assert np.array_equal(scaled.run_time, jobs.run_time)


def test_logs_without_usable_jobs_or_with_doubled_numbers_are_refused() -> None:
    with pytest.raises(WorkloadError, match=r"no job has .* among the log's 1 jobs"):
        jobs_of_log(log_of(line(1, 0, -1, 4)))
    with pytest.raises(WorkloadError, match="occurs twice"):
        jobs_of_log(log_of(line(1, 0, 5, 4), line(1, 2, 5, 4)))


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
