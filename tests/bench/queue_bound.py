"""Questions about the wait of a job, on a kept plan and on one made anew, against the same plan in plain Python."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from ramp.queue_bound.easy_plan import plan_starts
from ramp.queue_bound.predictor import PREDICTORS, QueuedJob
from ramp.queue_bound.queue_plan import JobShape
from simulation.experiments.queue_bound.runs import crowded_plan

HOUR = 3_600_000_000
REPEATS = 25


def run() -> list[tuple[str, float, str]]:
    """Medians over some repeats, with 100 and 1 000 waiting jobs."""
    rows: list[tuple[str, float, str]] = []
    for waiting in (100, 1_000):
        plan, now = crowded_plan(waiting, 1)
        taken: dict[str, list[float]] = {"all planned again": [], "kept plan": []}
        for repeat in range(REPEATS):
            plan.runs("last", 1, 0, (86_400 + repeat) * 1_000_000)
            for times in taken.values():
                began = perf_counter()
                plan.earliest(JobShape(8, HOUR), now)
                times.append(perf_counter() - began)
        compiled = float(np.median(taken["all planned again"]))
        rows += [
            (f"planned start, {waiting} waiting, {what}", float(np.median(times)) * 1e6, "us")
            for what, times in taken.items()
        ]
        plan._planner = plan_starts
        plan.runs("last", 1, 0, 86_300_000_000)
        began = perf_counter()
        plan.earliest(JobShape(8, HOUR), now)
        rows.append((f"the same in plain Python, {waiting} waiting", (perf_counter() - began) / compiled, "times"))
    for name in ("bmbp", "planned"):
        predictor = PREDICTORS.find(name).new()
        job = QueuedJob("", 8, HOUR, planned=HOUR)
        for number in range(10_000):
            predictor.submitted(number, job, number * HOUR)
            predictor.started(number, number * HOUR + number % 997)
        began = perf_counter()
        for _ in range(1_000):
            predictor.bound(job)
        rows.append((f"bound by {name}, history full", (perf_counter() - began) * 1e3, "us"))
    return rows
