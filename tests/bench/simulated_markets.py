"""Large markets in virtual time: CPU time, and the peak of memory of a process that runs nothing else.

A thousand users who ask a hundred sellers at once are a case of the study SCALE of examples/studies/large_markets.py;
its CPU time is that while requests are running. Requests that follow each other go through `simulation.market`.

python -m tests.bench simulated_markets
"""

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import ramp
from ramp.declarations import load_file
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import ResourceConfig
from ramp.shipped_files import find_config
from simulation.market.auction_runs import market
from simulation.seldom_collected import collect_seldom

STUDY = Path(__file__).parents[2] / "examples/studies/large_markets.py"


def run() -> list[tuple[str, float, str]]:
    """Measure each market in a process of its own."""
    from simulation.experiments.study import Run  # only here: it would count as memory of the second market

    study = load_file(STUDY)
    cases = study.growing_markets(Run(quick=False, seed=1, options={}))
    (case,) = (each for each in cases if (len(each.resources), each.users) == (100, 1_000))
    return [
        *_measured("100 sellers, 1000 requests at once", at_once, case),
        *_measured("1000 sellers, 200 requests one after the other", in_turn, study.many_resources(1_000), 200),
    ]


def _measured(name: str, measure: Callable[..., float], *arguments: Any) -> list[tuple[str, float, str]]:
    with ProcessPoolExecutor(1, get_context("spawn")) as own_process:
        took = own_process.submit(measure, *arguments).result()
        memory = own_process.submit(_peak_of_memory).result()
    return [(f"{name}: CPU time", took, "s"), (f"{name}: peak of memory", memory, "MiB")]


def _peak_of_memory() -> float:
    """Of this process alone: `getrusage` counts what its parent had when it began (proc(5), VmHWM)."""
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak) / 2**10


def at_once(case: Any) -> float:
    """Return CPU seconds of a case of the study, the launch not included."""
    collect_seldom()
    row = load_file(STUDY).row_of(case)
    assert row["sold"] == row["users"]
    return float(row["cpu_s"])


def in_turn(resources: tuple[ResourceConfig, ...], requests: int) -> float:
    """Return CPU seconds, the launch included, of so many requests in one round."""
    swarm = replace(load_config(find_config("table2")), resources=resources)
    asked = [ramp.request(price=70, cores=16, wall_time="1h", slack="24h")] * requests
    began = process_time()
    found = market(*asked, swarm=swarm, rounds=1, users=20)
    assert all(each.status == "committed" for each in found.purchases)
    return process_time() - began
