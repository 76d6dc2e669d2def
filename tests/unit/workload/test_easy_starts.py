"""EASY backfilling by hand."""

from __future__ import annotations

import numpy as np

from simulation.workload.generators.easy_starts import easy_starts


def starts(jobs: list[tuple[int, int, int, int]], cores: int) -> list[int]:
    """Jobs as (submitted, cores, run time, requested time)."""
    columns = [np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True)]
    return easy_starts(*columns, cores).tolist()


def test_a_job_that_ends_before_the_first_in_line_can_start_goes_ahead() -> None:
    assert starts([(0, 6, 100, 100), (1, 8, 10, 10), (2, 4, 90, 90)], 10) == [0, 100, 2]


def test_a_job_that_would_delay_the_first_in_line_waits() -> None:
    assert starts([(0, 6, 100, 100), (1, 8, 10, 10), (2, 4, 99, 99)], 10) == [0, 100, 110]


def test_a_long_job_on_cores_the_first_in_line_will_not_need_goes_ahead() -> None:
    assert starts([(0, 6, 100, 100), (1, 8, 10, 10), (2, 2, 5000, 5000), (3, 1, 5000, 5000)], 10) == [0, 100, 2, 110]


def test_an_early_end_lets_the_line_move_at_once() -> None:
    assert starts([(0, 10, 20, 100), (1, 10, 5, 5), (1, 3, 5, 5)], 10) == [0, 20, 25]
