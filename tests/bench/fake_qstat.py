"""Quotes per second of the plug-in fake_qstat on the Curie log, against reading the log anew for each, as scripts do.

Without the log in RAMP_LOGS or the cache, a synthetic workload of Curie's size is used, and the rows say so.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ramp.model.instant import HOUR, MINUTE, SECOND, Instant, from_iso
from ramp.model.request import RequestUnit, TotalCores
from ramp.plugins.interface import PluginSettings, Slot
from simulation.resource.fake_qstat import FakeQstat
from simulation.workload.generators.lublin import synthetic_log
from simulation.workload.logs import find_log, known_log
from simulation.workload.swf import read_swf, write_swf

LOG = "CEA-Curie-2011-2.1-cln"
CORES = 93312
BEGIN = from_iso("2026-11-21T08:00:00Z")
QUOTES = 3000
NAIVE_QUOTES = 4
HOLDS = 200


def _unit(now: Instant) -> RequestUnit:
    return RequestUnit(1, 70, now + 3 * HOUR, TotalCores(256), now + 5 * MINUTE, HOUR)


def _timed(quote: Callable[[Instant], object], instants: list[Instant]) -> list[float]:
    durations = []
    for now in instants:
        begin = time.thread_time()  # quotes wait for nothing: their CPU time is theirs whatever else the computer does
        quote(now)
        durations.append(time.thread_time() - begin)
    return durations


def _read_anew(path: Path, origin_s: int, now: Instant) -> float:
    """The load as the original's script finds it: the log from its top to the machine's time, line by line."""
    at = origin_s + (now - BEGIN) // SECOND
    taken = 0
    with path.open("rb") as log:
        for line in log:
            if line.startswith(b";"):
                continue
            fields = line.split()
            submit, wait, run, cores = (int(fields[column]) for column in (1, 2, 3, 4))
            if submit >= at:
                break
            if run >= 0 and cores > 0 and submit + wait + run > at:
                taken += cores
    return taken / CORES


def run() -> list[tuple[str, float, str]]:
    """Measure; rows of name, value and unit."""
    path = find_log(LOG)
    kind = "log" if path is not None else "synthetic"
    log = read_swf(path) if path is not None else synthetic_log(CORES, known_log(LOG).months * 30 * 86_400, 1)
    rows: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "curie.swf"
        write_swf(plain, log)
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            settings = PluginSettings("curie1", CORES, 16, BEGIN, {"log": str(plain)}, Path(folder) / "state")
            begin = time.perf_counter()
            machine = FakeQstat(settings)
            rows.append((f"fake_qstat opens Curie the first time ({kind})", time.perf_counter() - begin, "s"))
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before
        origin = int(log.submit_time.min())
        length = int(log.submit_time.max()) - origin
        chosen = random.Random(1)
        instants = sorted(BEGIN + chosen.randrange(length) * SECOND for _ in range(QUOTES))
        durations = _timed(lambda now: machine.quote(_unit(now), now), instants)
        tenth = QUOTES // 10
        rows += [
            (f"fake_qstat quotes at random times of Curie ({kind})", QUOTES / sum(durations), "1/s"),
            ("a quote, median", statistics.median(durations) * 1e6, "us"),
            ("a quote, 99th percentile", sorted(durations)[-QUOTES // 100] * 1e6, "us"),
            ("a quote in the log's first tenth, mean", statistics.fmean(durations[:tenth]) * 1e6, "us"),
            ("a quote in the log's last tenth, mean", statistics.fmean(durations[-tenth:]) * 1e6, "us"),
        ]
        within = _timed(lambda now: machine.quote(_unit(now), now), [instants[QUOTES // 2]] * QUOTES)
        rows.append(("fake_qstat quotes within one second of the log", QUOTES / sum(within), "1/s"))
        naive = _timed(lambda now: _read_anew(plain, origin, now), instants[:: QUOTES // NAIVE_QUOTES])
        rows.append(("reading the log anew for each quote", len(naive) / sum(naive), "1/s"))
        rows.append(("fake_qstat over reading anew", statistics.fmean(naive) / statistics.fmean(durations), "x"))
        rows.append(("hold and confirm, durable", _holds(machine, instants), "1/s"))
    return rows


def _holds(machine: FakeQstat, instants: list[Instant]) -> float:
    """Reservations made in a second, each on disk twice."""
    wanted = []
    for now in instants:
        slot = machine.quote(_unit(now), now)
        if isinstance(slot, Slot):
            wanted.append((now, slot))
        if len(wanted) == HOLDS:
            break
    begin = time.perf_counter()
    for number, (now, slot) in enumerate(wanted):
        machine.hold(str(number), _unit(now), slot, now + MINUTE, now)
        machine.confirm(str(number), now)
    return len(wanted) / (time.perf_counter() - begin)


if __name__ == "__main__":
    for name, value, measure in run():
        print(f"{name:<60} {value:>12.4g} {measure}")
