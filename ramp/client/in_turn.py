"""A market without processes for asyncio: its connections, which compute and never wait, are used one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

from ramp.client.access import Access
from ramp.client.line import AsyncLine, Line
from ramp.control.events import Event
from ramp.control.requests import Request
from ramp.model.instant import Instant


class InTurn:
    """A market of this process as an `AsyncAccess`: what several tasks ask is answered one after the other.

    Args:
        access: the market; its connections answer out of this process, so that they never wait for anybody.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._turn = asyncio.Lock()

    @property
    def user(self) -> str:
        """See `ramp.client.access.SeenMarket`."""
        return self._access.user

    @property
    def domain(self) -> str:
        """See `ramp.client.access.SeenMarket`."""
        return self._access.domain

    @property
    def users(self) -> tuple[str, ...]:
        """See `ramp.client.access.SeenMarket`."""
        return self._access.users

    def now(self) -> Instant:
        """See `ramp.client.access.SeenMarket`."""
        return self._access.now()

    def new_id(self, kind: str) -> str:
        """See `ramp.client.access.SeenMarket`."""
        return self._access.new_id(kind)

    async def open_async(self) -> AsyncLine:
        """See `ramp.client.access.Access.open`."""
        return _LineInTurn(self._access.open(), self._turn)

    async def reopen_async(self) -> AsyncLine:
        """See `ramp.client.access.Access.reopen`."""
        return _LineInTurn(self._access.reopen(), self._turn)


class _LineInTurn:
    """A connection whose answers are told event by event, so that other tasks run in between."""

    def __init__(self, line: Line, turn: asyncio.Lock) -> None:
        self._line = line
        self._turn = turn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)

    async def send(self, request: Request) -> None:
        """See `ramp.client.line.Line.send`."""
        self._line.send(request)

    async def events(self, request: Request) -> AsyncGenerator[Event, None]:
        """See `ramp.client.line.Line.events`."""
        async with self._turn:
            for event in self._line.events(request):
                yield event
                await asyncio.sleep(0)
