"""The plug-in `slurm` on real clusters of 64 and 256 emulated nodes: a quote and a hold, beside the commands' floor."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ramp.batch.slurm.emulated import PACKAGES, EmulatedCluster, missing_programs
from ramp.batch.slurm.plugin import open_plugin
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings

TAKES_MINUTES = "it starts a Slurm of 256 nodes"
NODES = (64, 256)
CORES = 8
REPEATS = 15


def run() -> list[tuple[str, float, str]]:
    """Medians over some repeats; none where Slurm is not installed."""
    missing = missing_programs()
    if missing:
        sys.stderr.write(f"slurm is left out: {', '.join(missing)} not installed ({PACKAGES})\n")
        return []
    return [row for nodes in NODES for row in _rows(nodes)]


def _rows(nodes: int) -> list[tuple[str, float, str]]:
    folder = Path(tempfile.mkdtemp(prefix="rs-", dir="/tmp"))
    try:
        with EmulatedCluster(folder / "b", "b", nodes, CORES) as cluster:
            floor = _median(lambda _: cluster.run("sinfo", "-h"))
            rows = [(f"{nodes} nodes, the command sinfo alone", floor, "ms")]
            fresh, cached = _machine(cluster, 0.0, folder / "fresh"), _machine(cluster, 60.0, folder / "cached")
            now = int(time.time()) * SECOND
            unit = RequestUnit(1, 70, now + 9 * HOUR, TotalCores(CORES * 2), now + HOUR, 30 * MINUTE)
            cached.quote(unit, now)
            quoted = _median(lambda _: fresh.quote(unit, now))
            rows += [
                (f"{nodes} nodes, a quote from a fresh picture", quoted, "ms"),
                (f"{nodes} nodes, the same beside the command", quoted / floor, "times"),
                (f"{nodes} nodes, a quote from the kept picture", _median(lambda _: cached.quote(unit, now)), "ms"),
            ]

            def held(number: int) -> None:
                slot = fresh.quote(unit, now)
                assert isinstance(slot, Slot)
                begun = time.perf_counter()
                assert isinstance(fresh.hold(f"offer-{number}", unit, slot, now + HOUR, now), Reservation)
                taken.append((time.perf_counter() - begun) * 1e3)

            taken: list[float] = []
            for number in range(REPEATS):
                held(number)
            rows.append((f"{nodes} nodes, a hold, made and read back", statistics.median(taken), "ms"))
            confirmed = _median(lambda number: fresh.confirm(f"offer-{number}", now))
            released = _median(lambda number: fresh.release(f"offer-{number}", now))
            return [
                *rows,
                (f"{nodes} nodes, a confirmation", confirmed, "ms"),
                (f"{nodes} nodes, a release", released, "ms"),
            ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _machine(cluster: EmulatedCluster, age_s: float, state: Path):
    options = {"partition": "debug", "conf": str(cluster.conf), "snapshot_age_s": age_s}
    settings = PluginSettings(state.name, cluster.nodes * CORES, CORES, 0, options, state)
    return open_plugin(settings)


def _median(act: Callable[[int], object]) -> float:
    """Milliseconds."""
    times = []
    for number in range(REPEATS):
        begun = time.perf_counter()
        act(number)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)
