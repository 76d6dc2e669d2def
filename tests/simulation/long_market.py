"""A market that goes on for days of virtual time, with one purchase after another whose slots end on the way."""

import gc
import sys
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from ramp.model.instant import HOUR, MINUTE, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import events as ev
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.timing import Timing
from simulation.market.actors import COMPOSITION
from simulation.market.observing import Observer, Script
from simulation.market.specs import UserSpec
from simulation.market.world import World
from simulation.swarm import SWARM_TIMING
from tests.simulation.small_markets import seller

PAUSE = 2 * MINUTE
"""Between two purchases."""

TIMING = replace(SWARM_TIMING, heartbeat=5 * MINUTE, lease=9 * MINUTE, retention=Timing().retention)
"""Seldom heartbeats, for a run of a week is full of them otherwise; the retention is that of every market."""


class LongMarket:
    """One buyer and two machines.

    Attributes:
        world: the market.
        outcomes: how the requests ended.
    """

    def __init__(self, *, observer: Observer | None = None, script: Script | None = None) -> None:
        self.outcomes: Counter[str] = Counter()
        self.world = World(
            [seller(name, 64, 0.25, (40, 20)) for name in ("res0", "res1")],
            [UserSpec("alice", 10**13)],
            seed=1,
            composition=replace(COMPOSITION, timing=TIMING),
            listen=self._listen,
            observer=observer,
            script=script,
        )
        self._submitted = 0

    def _listen(self, _: str, progress: Progress, __: Instant) -> None:
        if isinstance(progress, RequestEnded):
            self.outcomes[progress.outcome.status.value] += 1

    def buy(self, purchases: int, units: int = 2) -> None:
        """Buy slots of ten minutes that begin in a minute, every two minutes."""
        for _ in range(purchases):
            start = self.world.now + MINUTE
            wanted = tuple(
                RequestUnit(number, 70, start + 10 * MINUTE, TotalCores(8), not_before=start, wall_time=10 * MINUTE)
                for number in range(1, units + 1)
            )
            request_id = f"request-{self._submitted}"
            self._submitted += 1
            submitted = ev.RequestSubmitted(request_id, RequestForQuotation(wanted), ev.AuctionOptions(rounds=2))
            self.world.command("alice", submitted)
            self.world.run(limit=PAUSE)

    def outlast(self) -> None:
        """Let everything end, and its retention pass."""
        self.world.run(limit=TIMING.retention + HOUR)

    def parties(self) -> dict[str, Any]:
        return {name: actor.host.party for name, actor in self.world._actors.items() if actor.host is not None}

    def journals(self) -> dict[str, Any]:
        return {name: actor.journal for name, actor in self.world._actors.items() if actor.journal is not None}

    def sizes(self) -> dict[str, int]:
        """Bytes that every party, its machine and its open journal take in memory."""
        taken = {name: deep_size([party]) for name, party in self.parties().items()}
        for name, journal in self.journals().items():
            taken[f"{name}'s journal"] = deep_size([journal._records])
        for name, machine in self.world.machines.items():
            taken[f"{name}'s machine"] = deep_size([machine])
        return taken


def deep_size(roots: Iterable[object]) -> int:
    """Bytes of everything that is reached from some objects but code: every object counts once."""
    seen: set[int] = set()
    waiting: deque[object] = deque(roots)
    total = 0
    while waiting:
        found = waiting.popleft()
        if id(found) in seen or isinstance(found, type | ModuleType | FunctionType):
            continue
        seen.add(id(found))
        total += sys.getsizeof(found)
        waiting.extend(gc.get_referents(found))
    return total
