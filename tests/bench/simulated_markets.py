"""Large markets in virtual time: CPU time, and the peak of memory of a process that runs nothing else.

python -m tests.bench simulated_markets
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from resource import RUSAGE_SELF, getrusage
from time import process_time

import ramp
from ramp.runtime.configuration.file import load_config
from ramp.shipped_files import find_config
from simulation.market.auction_runs import market

MARKETS = ((100, 1_000, "0s"), (1_000, 200, None))
"""Sellers, requests, and the pause between two of these; None: each when the one before has ended."""

BUYERS = 20
SHIFT_S = 7_919
"""Seconds of the log between two copies of a machine; a prime, so that copies do not share a rhythm."""


def run() -> list[tuple[str, float, str]]:
    """Measure each market in a process of its own."""
    rows = []
    for sellers, requests, every in MARKETS:
        with ProcessPoolExecutor(1, get_context("spawn")) as own_process:
            took, memory = own_process.submit(measured, sellers, requests, every).result()
        name = f"{sellers} sellers, {requests} requests {'at once' if every else 'one after the other'}"
        rows += [(f"{name}: CPU time", took, "s"), (f"{name}: peak of memory", memory, "MiB")]
    return rows


def measured(sellers: int, requests: int, every: str | None) -> tuple[float, float]:
    """Return CPU seconds, the launch included, and MiB of memory at most, of one round for each request.

    The sellers are the machines of Table 2, repeated with other base times.
    """
    config = load_config(find_config("table2"))
    resources = []
    for copy in range(sellers // len(config.resources)):
        for each in config.resources:
            options = {**each.options, "base_time_s": each.options["base_time_s"] + copy * SHIFT_S}
            resources.append(replace(each, name=f"{each.name}-{copy}", options=options))
    swarm = replace(config, resources=tuple(resources))
    asked = [ramp.request(price=70, cores=16, wall_time="1h", slack="24h")] * requests
    began = process_time()
    found = market(*asked, swarm=swarm, rounds=1, users=BUYERS, every=every)
    assert all(each.status == "committed" for each in found.purchases)
    return process_time() - began, getrusage(RUSAGE_SELF).ru_maxrss / 2**10
