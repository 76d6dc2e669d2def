"""EASY backfilling beside its definition, job by job."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulation.workload.generators import easy_starts as module
from simulation.workload.generators.easy_starts import easy_starts

JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8), st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=60
)
"""Submitted, cores, run time, and by how much more was asked for."""


def starts(jobs: list[tuple[int, int, int, int]], cores: int) -> list[int]:
    """Jobs as (submitted, cores, run time, requested time)."""
    columns = [np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True)]
    return easy_starts(*columns, cores).tolist()


def defined(jobs: list[tuple[int, int, int, int]], cores: int) -> list[int]:
    """What `starts` is to say: whoever waits is looked at whenever a job has ended or come."""
    begun: dict[int, int] = {}
    waiting: list[int] = []

    def free_at(now: int) -> int:
        return cores - sum(jobs[job][1] for job, at in begun.items() if at + jobs[job][2] > now)

    def look(now: int) -> None:
        while waiting and jobs[waiting[0]][1] <= free_at(now):
            begun[waiting.pop(0)] = now
        if not waiting:
            return
        limits = sorted((at + jobs[job][3], job) for job, at in begun.items() if at + jobs[job][2] > now)
        spare, shadow = free_at(now) - jobs[waiting[0]][1], now
        while spare < 0:
            shadow, job = limits.pop(0)
            spare += jobs[job][1]
        for job in waiting[1:]:
            _, size, _, requested = jobs[job]
            if size <= free_at(now) and (now + requested <= shadow or size <= spare):
                spare -= 0 if now + requested <= shadow else size
                begun[job] = now
                waiting.remove(job)

    for now in range(sum(run for _, _, run, _ in jobs) + jobs[-1][0] + 1):
        come = [job for job, (submitted, *_) in enumerate(jobs) if submitted == now]
        ended = any(at + jobs[job][2] == now for job, at in begun.items())
        for job in come:
            look(now)
            waiting.append(job)
        if come or ended:
            look(now)
    return [begun[job] for job in range(len(jobs))]


OUT_OF_TURN = [
    *((8, 32, 200, 50), (9, 20, 200, 0), (22, 11, 200, 0), (40, 26, 150, 0), (43, 21, 100, 100), (136, 30, 200, 100)),
    *((335, 11, 200, 100), (385, 2, 200, 0), (397, 6, 100, 50), (489, 4, 150, 50), (536, 2, 200, 0), (617, 25, 200, 0)),
]
"""The cores that the first leaves are counted anew when somebody has come, and may be more than were left over."""


@pytest.mark.parametrize("many", [1, 4, 1000])
@example(drawn=OUT_OF_TURN, cores=37)
@given(drawn=JOBS, cores=st.integers(8, 12))
def test_starts_are_those_of_the_definition(many: int, drawn: list[tuple[int, int, int, int]], cores: int) -> None:
    """However many are looked at at once."""
    jobs = [(submitted, size, run, run + more) for submitted, size, run, more in sorted(drawn)]
    with mock.patch.object(module, "MANY", many):
        assert starts(jobs, cores) == defined(jobs, cores)
