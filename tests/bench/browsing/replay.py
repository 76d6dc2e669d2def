"""A hundred events a second that a user's agent seems to tell: a recorded auction, told again and again.

The pages are served with a state folder of their own, whose sockets lead to the market's; that of one user leads here.
What the pages ask goes on to the agent and comes back; among what they follow are the replayed events.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.control.codec import LINE_BYTES_MAX, decode_request, encode_event
from ramp.control.events import Event, RequestEnded
from ramp.control.requests import Watch
from ramp.errors import RampError
from ramp.protocol.progress import RoundClosed, RoundOpened, UnitAdvanced
from ramp.runtime.state_folder import StateFolder
from tests.bench.browsing.market import ROUNDS

PER_SECOND = 100.0
AT_ONCE = 10
"""Replayed requests that go on at the same time."""

LENGTH = 300
"""Events of one replayed request: half a minute of it, and every three seconds one ends."""

ROUND_EVERY = 15
"""Every so many events of a request a round is opened, and closed with the next."""


async def record(state: StateFolder, user: str) -> list[Event]:
    """What a real auction of two units and three rounds tells."""
    import ramp

    market = AsyncMarket(find_market(state, user))
    told: list[Event] = []
    unit = ramp.request(cores=16, price=75, wall_time="1min", start="+5min", slack="1h")
    ended = await market.submit(unit, unit, rounds=ROUNDS, on_event=told.append)
    assert ended.committed, ended
    return told


class Replay:
    """The way of one user's pages to that user's agent, with replayed events on it.

    Args:
        market: the market's state folder.
        folder: where the pages' state folder is made.
        user: whose pages they are.
        recorded: of `record`.

    Attributes:
        served: the state folder that the pages are served with.
        sent: when each of the last events was told, by its number; seconds of the epoch.
    """

    def __init__(self, market: StateFolder, folder: Path, user: str, recorded: list[Event]) -> None:
        self._agent = market.socket(user)
        self._listeners: set[asyncio.StreamWriter] = set()
        self._opened = next(each for each in recorded if isinstance(each, RoundOpened))
        self._closed = next(each for each in recorded if isinstance(each, RoundClosed))
        self._advanced = [each for each in recorded if isinstance(each, UnitAdvanced)]
        (self._ended,) = [each for each in recorded if isinstance(each, RequestEnded)]
        self._numbers = itertools.count()
        self._requests = deque((self._name(), LENGTH * number // AT_ONCE) for number in reversed(range(AT_ONCE)))
        self.sent: dict[int, float] = {}
        self.served = StateFolder(folder / "w")
        self.served.prepare()
        for path in market.sockets.iterdir():
            if path != self._agent:
                (self.served.sockets / path.name).symlink_to(path)
        self._socket = self.served.socket(user)

    @property
    def requests(self) -> list[str]:
        """Ids of the replayed requests that go on, the newest first."""
        return [name for name, _ in reversed(self._requests)]

    async def go_on(self) -> None:
        """Serve the pages' connections and replay, until cancelled."""
        server = await asyncio.start_unix_server(self._connected, str(self._socket), limit=LINE_BYTES_MAX)
        begin = time.monotonic()
        async with server:
            for number in itertools.count():
                await asyncio.sleep(max(begin + number / PER_SECOND - time.monotonic(), 0))
                self._tell(number)

    def _tell(self, number: int) -> None:
        """Tell the next event: of each replayed request in turn; where one ends the next begins."""
        name, step = self._requests[number % len(self._requests)]
        which = self._requests.index((name, step))
        round_number, part = divmod(step, ROUND_EVERY)
        event: Event
        if step == LENGTH - 1:
            event = replace(self._ended, outcome=replace(self._ended.outcome, request_id=name))
        elif part == 0:
            event = replace(self._opened, request_id=name, round_number=round_number + 1)
        elif part == 1:
            closed = replace(self._closed.record, round_number=round_number + 1)
            event = replace(self._closed, request_id=name, record=closed)
        else:
            unit = self._advanced[number % len(self._advanced)]
            event = replace(unit, request_id=name, detail=f"event {number}")
            self.sent[number] = time.time()
            self.sent.pop(number - 10_000, None)
        if step == LENGTH - 1:
            del self._requests[which]
            self._requests.append((self._name(), 0))
        else:
            self._requests[which] = (name, step + 1)
        line = encode_event(event)
        for writer in list(self._listeners):
            writer.write(line)

    def _name(self) -> str:
        return f"request-{next(self._numbers):024x}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        agent, to_agent = await asyncio.open_unix_connection(str(self._agent), limit=LINE_BYTES_MAX)
        back = asyncio.create_task(_pass_on(agent, writer))
        try:
            while line := await reader.readline():
                to_agent.write(line)
                await to_agent.drain()
                with contextlib.suppress(RampError):
                    if decode_request(line) == Watch():
                        await asyncio.sleep(0.2)  # it is told first that it is heard
                        self._listeners.add(writer)
        except OSError:
            pass  # the pages' server has ended
        finally:
            self._listeners.discard(writer)
            back.cancel()
            for each in (to_agent, writer):
                each.close()


async def _pass_on(agent: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while line := await agent.readline():
            writer.write(line)
            await writer.drain()
        writer.close()
