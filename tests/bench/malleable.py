"""Malleable jobs a second: logs by the compiled loop, against the very same loop as plain Python; KOALA's workloads."""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter

import numpy as np

from simulation.experiments.koala.runs import APPROACHES, Setting, run_setting
from simulation.schedulers.compiled.malleable import MARGINAL_GAIN, MINIMUM, easy_malleable

PROCESSORS = 338
JOBS = 100_000
PLAIN_JOBS = 1_000
SEEDS = 10
SECOND = 1_000_000
STRATEGIES = {"minimum": MINIMUM, "marginal gain": MARGINAL_GAIN}


def run() -> list[tuple[str, float, str]]:
    """Both strategies on a synthetic log; the reference in a process of its own, with Numba switched off."""
    rows: list[tuple[str, float, str]] = []
    for name, strategy in STRATEGIES.items():
        seconds(strategy, 100)  # compiles
        ours = JOBS / seconds(strategy, JOBS)
        few = PLAIN_JOBS / seconds(strategy, PLAIN_JOBS)
        told = subprocess.run(
            [sys.executable, "-m", "tests.bench.malleable", str(strategy)],
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        plain = PLAIN_JOBS / float(told.stdout)
        rows.append((f"{JOBS} malleable jobs, {name}", ours, "jobs/s"))
        rows.append((f"{PLAIN_JOBS} malleable jobs, {name}, plain Python", plain, "jobs/s"))
        rows.append((f"{PLAIN_JOBS} malleable jobs, {name}, against plain Python", few / plain, "times"))
    began = perf_counter()
    for workload in APPROACHES:
        for seed in range(SEEDS):
            run_setting(Setting(workload, "EGS", seed))
    rows.append((f"KOALA, 300 jobs, 4 workloads, {SEEDS} seeds", perf_counter() - began, "s"))
    return rows


def seconds(strategy: int, count: int) -> float:
    """Time that so many malleable jobs take, which keep the machine at four fifths of its capacity."""
    draw = np.random.default_rng(1)
    size = np.minimum(1 << draw.integers(0, 8, count), PROCESSORS)
    duration = (draw.lognormal(7.5, 1.5, count) * SECOND).astype(np.int64) + 1
    span = float((size * (duration / SECOND)).sum()) / (0.8 * PROCESSORS)
    submit = np.sort(draw.integers(0, int(span * SECOND), count))
    average = np.maximum(1.0, size * 2 ** draw.uniform(0, 2, count))
    variance = draw.uniform(0, 2, count)
    smallest, largest = -(-size // 4), np.minimum(4 * size, PROCESSORS)
    speed_up = (average, variance, average, variance)
    began = perf_counter()
    easy_malleable(submit, duration, 2 * duration, size, smallest, largest, *speed_up, PROCESSORS, strategy, False)
    return perf_counter() - began


if __name__ == "__main__":
    sys.stdout.write(f"{seconds(int(sys.argv[1]), PLAIN_JOBS)}\n")
