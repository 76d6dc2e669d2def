"""Whether the memory of `ramp web` stays as it is: five pages open, real auctions and replayed events, for an hour."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import statistics
import sys
import tempfile
import time
from pathlib import Path

from psutil import NoSuchProcess

from tests.bench.browsing.market import Auctions, agents_of, name_of, running_market
from tests.bench.browsing.pages import PagesServer, chromium, open_pages
from tests.bench.browsing.replay import Replay, record

TAKES_MINUTES = "an hour, for a trend that shows late"
MINUTES = 60.0
SAMPLE_S = 10.0
WARM_UP = 1 / 6
"""Share of the time that is not judged: caches fill, and modules are loaded."""

KEPT = Path("build/bench/web-memory.csv")
"""Resident memory of each process in MB, every ten seconds."""

PAGES_OF = "bob"
Row = tuple[str, float, str]


def run(minutes: float = MINUTES) -> list[Row]:
    """Measure; every sample is in `KEPT`.

    Args:
        minutes: how long.
    """
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        return asyncio.run(_measure(Path(folder), minutes))


async def _measure(folder: Path, minutes: float) -> list[Row]:
    samples: list[tuple[float, str, float]] = []
    with running_market(folder) as state:
        replay = Replay(state, folder, PAGES_OF, await record(state, PAGES_OF))
        replaying = asyncio.create_task(replay.go_on())
        server = await asyncio.to_thread(PagesServer, replay.served)
        try:
            async with chromium() as browser, open_pages(browser, server, replay, PAGES_OF) as opened:
                watched = {"ramp web": server.process} | {name_of(each): each for each in agents_of(state)}
                auctions = Auctions(state)
                begin = time.monotonic()

                async def sample() -> None:
                    KEPT.parent.mkdir(parents=True, exist_ok=True)
                    with KEPT.open("w", newline="") as file:
                        kept = csv.writer(file)
                        kept.writerow(["seconds", "process", "resident_mb"])
                        while True:
                            for name, process in watched.items():
                                with contextlib.suppress(NoSuchProcess):
                                    row = (time.monotonic() - begin, name, process.memory_info().rss / 1e6)
                                    samples.append(row)
                                    kept.writerow((f"{row[0]:.1f}", name, f"{row[2]:.2f}"))
                            file.flush()
                            await asyncio.sleep(SAMPLE_S)

                sampling = asyncio.create_task(sample())
                await asyncio.gather(auctions.go_on(60 * minutes), opened.go_on(60 * minutes))
                sampling.cancel()
                took = time.monotonic() - begin
        finally:
            replaying.cancel()
            await asyncio.to_thread(server.stop)
    for what, count in auctions.otherwise.items():
        sys.stderr.write(f"web_memory: {count} auctions were not bought: {what}\n")
    return [
        ("web memory: real auctions of three rounds, bought and paid", auctions.bought / took, "1/s"),
        ("web memory: auctions that the computer did not bear besides", auctions.left_out / took, "1/s"),
        ("web memory: pages of requests opened one after the other", opened.opened, ""),
        ("web memory: an event is on a page after, median", 1000 * statistics.median(opened.shown), "ms"),
        *_verdict(samples, took),
    ]


def _verdict(samples: list[tuple[float, str, float]], took: float) -> list[Row]:
    """Means of both halves after the warm-up, and how much the second is above the first."""
    rows: list[Row] = []
    middle = took * (1 + WARM_UP) / 2
    for name in dict.fromkeys(name for _, name, _ in samples):
        mine = [(at, size) for at, each, size in samples if each == name and at >= took * WARM_UP]
        first = statistics.fmean(size for at, size in mine if at < middle)
        second = statistics.fmean(size for at, size in mine if at >= middle)
        slope = statistics.linear_regression(*zip(*mine, strict=True)).slope * 3600
        rows += [
            (f"web memory: {name}, mean of the second half", second, "MB"),
            (f"web memory: {name}, second half over the first", 100 * (second / first - 1), "%"),
            (f"web memory: {name}, trend", slope, "MB/h"),
        ]
    return rows
