"""Schedulers that differ in the order of their queue, start by start against the definitions of the orders.

The reference sorts the whole queue at every moment, and adds up each account's use from all runs so far. It shares no
code with the schedulers: no lines by kind, no memory of failures, no running sums.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.machines.flat import FlatMachine
from simulation.queueing.job_table import JobTable, jobs_of_log
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.workload.logs import find_log
from simulation.workload.swf import read_swf

SECOND = 1_000_000
SDSC = "SDSC-SP2-1998-4.2-cln"


@dataclass(eq=False)
class Submitted:
    """A job; times in seconds."""

    submit: int
    length: int
    requested: int
    size: int
    user: int
    group: int
    queue: int
    start: int = -1
    index: int = -1


Key = Callable[[Submitted], float]
Order = Callable[[int, list[Submitted]], Key]
"""Key of waiting jobs, lowest first, at a time in seconds, after the runs so far."""


def always(key: Key) -> Order:
    return lambda now, begun: key


def use_over_share(half_life_h: float, shares: Mapping[int, float], by: str) -> Order:
    """Integral of 2 ** -(age / half life) over all units x seconds that an account has had, over its share."""
    half_life_s = half_life_h * 3600

    def order(now: int, begun: list[Submitted]) -> Key:
        runs = np.array([(each.start, each.start + each.length, each.size) for each in begun], float).reshape(-1, 3).T
        newest, oldest = 0.5 ** ((now - np.minimum(runs[1], now)) / half_life_s), 0.5 ** ((now - runs[0]) / half_life_s)
        use = runs[2] * (newest - oldest) * half_life_s / log(2)
        account = np.array([getattr(each, by) for each in begun], int)
        return lambda job: round(use[account == getattr(job, by)].sum() / shares.get(getattr(job, by), 1), 3)

    return order


Window = Callable[[Submitted, list[Submitted]], bool]
"""Whether a job may still start in a walk that has passed over others, which did not fit."""

WINDOWS: dict[str, Window] = {
    "head": lambda job, passed: not passed,
    "first-fit": lambda job, passed: True,
    "indices": lambda job, passed: not passed or job.index - passed[0].index < 3,
    "waiting": lambda job, passed: len(passed) < 3,
}

ORDERS: dict[str, tuple[str, dict[str, Any], Order]] = {
    "fcfs": ("fcfs", {}, always(lambda job: 0)),
    "sjf": ("sjf", {}, always(lambda job: job.requested)),
    "ljf": ("ljf", {}, always(lambda job: -job.requested)),
    "queues": ("priority", {}, always(lambda job: -job.queue)),
    "groups by table": (
        "priority",
        {"by": "group", "priorities": {"1": 5.0, "2": 9.0}},
        always(lambda job: -{1: 5, 2: 9}.get(job.group, 0)),
    ),
    "sizes and waiting": (  # at any time one has the priority size + points x (now - submission)
        "priority",
        {"by": "size", "points_per_hour": 900},
        lambda now, begun: lambda job: -(job.size + (now - job.submit) / 4),
    ),
    "users": ("fair-share", {"half_life_h": 0.005}, use_over_share(0.005, {}, "user")),
    "groups with shares": (
        "fair-share",
        {"half_life_h": 24, "by": "group", "shares": {"1": 3}},
        use_over_share(24, {1: 3}, "group"),
    ),
}


def reference(jobs: list[Submitted], capacity: int, order: Order, within: Window) -> list[int]:
    """Start times: whenever jobs have come or ended, the queue is walked in its order."""
    begun: list[Submitted] = []
    for index, job in enumerate(jobs):
        job.index = index
    moments = [job.submit for job in jobs]
    while moments:
        now = heapq.heappop(moments)
        free = capacity - sum(job.size for job in begun if job.start + job.length > now)
        key, passed = order(now, begun), list[Submitted]()
        for job in sorted((job for job in jobs if job.submit <= now and job.start < 0), key=key):
            if not within(job, passed):
                break
            if job.size > free:
                passed.append(job)
                continue
            job.start = now
            begun.append(job)
            free -= job.size
            heapq.heappush(moments, now + job.length)  # one of no length gives way before the next walk
    return [job.start for job in jobs]


def compare(name: str, rule: str, jobs: list[Submitted], capacity: int) -> None:
    scheduler, options, order = ORDERS[name]
    if name != "fcfs":
        options = {**options, "starts": rule}
    elif rule == "first-fit":
        scheduler = rule
    elif rule != "head":
        scheduler, options = "window-first-fit", {"window": 3, "window_counts": rule}
    rows = [(job.submit * SECOND, job.length * SECOND, job.requested * SECOND, job.size) for job in jobs]
    numbers = np.arange(1, len(jobs) + 1)
    accounts = np.array([(job.user, job.group, job.queue) for job in jobs], np.int64).T
    table = JobTable(numbers, *np.array(rows, np.int64).T, numbers - 1, accounts)
    run = run_log(FlatMachine(capacity), table, SchedulerOptions(scheduler, options))
    assert (run.schedule.start_time // SECOND).tolist() == reference(jobs, capacity, order, WINDOWS[rule])


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[Submitted], int]:
    capacity = draw(st.integers(1, 6))
    number = st.integers(1, 3)
    job = st.builds(
        lambda submit, length, beyond, *others: Submitted(submit, length, max(length + beyond, 1), *others),
        st.integers(0, 25), st.integers(0, 12), st.integers(0, 9), st.integers(1, capacity), number, number, number,
    )  # fmt: skip
    return sorted(draw(st.lists(job, min_size=1, max_size=12)), key=lambda job: job.submit), capacity


CASES = [("fcfs", "indices"), ("fcfs", "waiting"), *((name, rule) for name in ORDERS for rule in ("head", "first-fit"))]


@pytest.mark.parametrize(("name", "rule"), CASES)
@settings(max_examples=examples(60))
@given(workload=workloads())
def test_every_start_follows_from_the_order(name: str, rule: str, workload: tuple[list[Submitted], int]) -> None:
    compare(name, rule, *workload)


@pytest.mark.logs
@pytest.mark.parametrize("rule", ["head", "first-fit"])
@pytest.mark.parametrize("name", ["sjf", "ljf", "queues", "groups with shares"])
def test_every_start_on_a_real_log(name: str, rule: str) -> None:
    """The first 1000 jobs of SDSC SP2 on half of its processors, where up to hundreds wait."""
    path = find_log(SDSC)
    if path is None:
        pytest.skip(f"{SDSC} is not on this computer; RAMP_LOGS names the folder of the logs")
    log = read_swf(path)
    table = jobs_of_log(log, max_jobs=1000)
    assert table.accounts is not None
    columns = [table.submit_time, np.minimum(table.run_time, table.requested_time), table.requested_time]
    times = [(column // SECOND).tolist() for column in columns]
    jobs = [
        Submitted(*row)
        for row in zip(*times, np.minimum(table.size, 64).tolist(), *table.accounts.tolist(), strict=True)
    ]
    compare(name, rule, jobs, 64)
