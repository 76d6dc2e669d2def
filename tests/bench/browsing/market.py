"""A market of 24 machines under a stream of real auctions, for what looks at its pages meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import ramp
from ramp.client.access import find_market, running
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.swarm import start_detached, stop
from ramp.control.events import Event
from ramp.errors import RampError
from ramp.protocol.progress import RoundClosed
from ramp.runtime.shipped_swarms import find_config
from ramp.runtime.state_folder import StateFolder

ROUNDS = 3
PER_SECOND = 2.0
AT_ONCE_MAX = 12
"""Auctions that go on at the same time; above it the computer does not bear the pace, and the next is left out."""

RETENTION_S = 1200
"""The least that is allowed: what is bought leaves the agents' memory so long after its slot."""


@contextlib.contextmanager
def running_market(folder: Path) -> Iterator[StateFolder]:
    """The shipped market of 24 machines, with two users that can pay for hours; ended with the program."""
    text = find_config("quickstart").read_text()
    for deposit in ("deposit = 10000000", "deposit = 25000"):
        assert deposit in text
        text = text.replace(deposit, "deposit = 1000000000")
    config = folder / "market.toml"
    config.write_text(f"{text}\n[timing]\nretention_s = {RETENTION_S}\n")
    state = StateFolder(folder / "m")
    start_detached(config, state)
    try:
        yield state
    finally:
        stop(state)


def agents_of(state: StateFolder) -> list[psutil.Process]:
    """The supervisor and the processes that it has begun: agents and the XMPP server."""
    supervisor = psutil.Process(running(state).pid)
    return [supervisor, *supervisor.children(recursive=True)]


def name_of(process: psutil.Process) -> str:
    """What a process of the market is: its module, and the first of its agents."""
    words = process.cmdline()
    told = [word for word in words if word.startswith("ramp.")] + [word for word in words if "," in word]
    return " of ".join(each.partition(",")[0].rpartition(".")[2] for each in told)


def processor_seconds(processes: Sequence[psutil.Process]) -> float:
    """Processor time that processes have had so far."""
    return sum(sum(each.cpu_times()[:2]) for each in processes)


@dataclass(slots=True)
class Auctions:
    """Real auctions of three rounds, begun at an even pace whether or not the earlier ones have ended.

    Attributes:
        going_on: auctions that go on.
        rounds: seconds of every round, in the order in which they closed.
        bought: auctions that ended with a purchase.
        left_out: auctions that were not begun, for `AT_ONCE_MAX` went on.
        otherwise: what became of the others, and how often.
    """

    state: StateFolder
    per_second: float = PER_SECOND
    rounds: list[float] = field(default_factory=list)
    bought: int = 0
    left_out: int = 0
    going_on: int = 0
    otherwise: dict[str, int] = field(default_factory=dict)

    async def go_on(self, seconds: float) -> None:
        """Let them come for a while, and wait for the last."""
        users = running(self.state).names("user")
        begin = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(round(seconds * self.per_second)):
                await asyncio.sleep(max(begin + number / self.per_second - time.monotonic(), 0))
                if self.going_on < AT_ONCE_MAX:
                    group.create_task(self._one(users[number % len(users)]))
                else:
                    self.left_out += 1

    async def _one(self, user: str) -> None:
        wanted = ramp.request(cores=16, price=75, wall_time="1min", start="+2min", slack="1h")
        self.going_on += 1
        try:
            market = AsyncMarket(find_market(self.state, user))
            ended = await market.submit(wanted, rounds=ROUNDS, on_event=self._heard)
        except RampError as error:
            self._other(str(error))
            return
        finally:
            self.going_on -= 1
        if ended.committed:
            self.bought += 1
        else:
            self._other(f"{ended.status}: {ended.reason}")

    def _other(self, what: str) -> None:
        self.otherwise[what] = self.otherwise.get(what, 0) + 1

    def _heard(self, event: Event) -> None:
        if isinstance(event, RoundClosed):
            self.rounds.append(event.record.duration / 1e6)
