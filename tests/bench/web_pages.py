"""How soon an event is on a page, and what open pages cost the agents: real auctions and replayed events, by turns.

The reference is the same market without `ramp web`, in turns of the same run. Everything shares one computer, also the
browser: so the agents' processor time for an auction stands beside their rounds, which wait for whoever else computes.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.async_api import Browser

from ramp.control.events import Event
from ramp.runtime.state_folder import StateFolder
from tests.bench.browsing.market import Auctions, agents_of, processor_seconds, running_market
from tests.bench.browsing.pages import LOOKED_AT, PagesServer, chromium, open_pages
from tests.bench.browsing.replay import Replay, record

TAKES_MINUTES = "auctions with and without open pages by turns"
MINUTES = 4.0
PAIRS = 3
"""Turns without pages, and as many with them."""

PAGES_OF = "bob"
GOAL_MS = 200.0
"""An event is to be on a page within so many milliseconds."""

Row = tuple[str, float, str]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn.

    Attributes:
        rounds: seconds of each round.
        processor: seconds of the agents' processor time for an auction.
        pace: auctions a second that were bought.
        server: share of a processor that the pages' server has had.
    """

    rounds: Sequence[float]
    processor: float
    pace: float
    server: float = 0.0


def run(minutes: float = MINUTES) -> list[Row]:
    """Measure.

    Args:
        minutes: how long all turns take together.
    """
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        return asyncio.run(_measure(Path(folder), 60 * minutes / (2 * PAIRS)))


async def _measure(folder: Path, seconds: float) -> list[Row]:
    without: list[Turn] = []
    opened: list[Turn] = []
    shown: list[float] = []
    with running_market(folder) as state:
        recorded = await record(state, PAGES_OF)
        agents = agents_of(state)
        await Auctions(state).go_on(seconds / 2)  # modules are loaded, caches filled
        async with chromium() as browser:
            for number in range(PAIRS):
                without.append(await _turn(state, agents, seconds))
                served = folder / f"served{number}"
                opened.append(await _turn_with_pages(state, agents, served, recorded, browser, seconds, shown))
    walls = [_median(each.rounds) / _median(bare.rounds) for bare, each in zip(without, opened, strict=True)]
    costs = [each.processor / bare.processor for bare, each in zip(without, opened, strict=True)]
    late = statistics.quantiles(shown, n=20)
    name = "web pages"
    return [
        (f"{name}: real auctions of three rounds, bought and paid", statistics.fmean(t.pace for t in opened), "1/s"),
        (f"{name}: an event is on a page after, median", 1000 * _median(shown), "ms"),
        (f"{name}: an event is on a page after, 95 of 100 within", 1000 * late[-1], "ms"),
        (f"{name}: events on a page within {GOAL_MS:g} ms", 100 * _share(shown, GOAL_MS / 1000), "%"),
        (f"{name}: the server's share of a processor", 100 * statistics.fmean(t.server for t in opened), "%"),
        (f"{name}: a round without pages, median", 1000 * statistics.fmean(_median(t.rounds) for t in without), "ms"),
        (f"{name}: a round with {2 + len(LOOKED_AT)} pages against that, median of the pairs", _median(walls), "x"),
        (f"{name}: the same, least of the pairs", min(walls), "x"),
        (f"{name}: the same, greatest of the pairs", max(walls), "x"),
        (
            f"{name}: the agents' processor time for an auction, without",
            1000 * _median([t.processor for t in without]),
            "ms",
        ),
        (f"{name}: that with pages against it, median of the pairs", _median(costs), "x"),
        (f"{name}: the same, least of the pairs", min(costs), "x"),
        (f"{name}: the same, greatest of the pairs", max(costs), "x"),
        (
            f"{name}: processes that wanted one of {os.cpu_count()} processors at the end (load average)",
            os.getloadavg()[0],
            "",
        ),
    ]


async def _turn(state: StateFolder, agents: Sequence[psutil.Process], seconds: float) -> Turn:
    auctions = Auctions(state)
    before = processor_seconds(agents)
    begin = asyncio.get_running_loop().time()
    await auctions.go_on(seconds)
    took = asyncio.get_running_loop().time() - begin
    spent = processor_seconds(agents) - before
    return Turn(auctions.rounds, spent / max(auctions.bought, 1), auctions.bought / took)


async def _turn_with_pages(
    state: StateFolder,
    agents: Sequence[psutil.Process],
    served: Path,
    recorded: list[Event],
    browser: Browser,
    seconds: float,
    shown: list[float],
) -> Turn:
    served.mkdir()
    replay = Replay(state, served, PAGES_OF, recorded)
    replaying = asyncio.create_task(replay.go_on())
    server = await asyncio.to_thread(PagesServer, replay.served)
    try:
        async with open_pages(browser, server, replay, PAGES_OF) as opened:
            await opened.go_on(5.0)  # the pages are there, and what was late with them has been shown
            opened.shown.clear()
            before = processor_seconds([server.process])
            looking = asyncio.create_task(opened.go_on(seconds))
            turn = await _turn(state, agents, seconds)
            await looking
            spent = processor_seconds([server.process]) - before
            shown += opened.shown
    finally:
        replaying.cancel()
        await asyncio.to_thread(server.stop)
    return Turn(turn.rounds, turn.processor, turn.pace, spent / seconds)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _share(values: Sequence[float], limit: float) -> float:
    return sum(each <= limit for each in values) / len(values)
