"""Blocking connections behind the asyncio interface, so that one implementation serves both kinds of market."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from types import TracebackType
from typing import Self, TypeVar

from ramp.client.access import Access
from ramp.client.line import AsyncLine, Line
from ramp.control.events import Event
from ramp.control.requests import Request
from ramp.model.instant import Instant

T = TypeVar("T")


def finish(coroutine: Coroutine[object, None, T]) -> T:
    """Run a coroutine to its end in this thread, without an event loop; all its connections must block."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a blocking connection must not suspend its coroutine")


class OverBlocking:
    """A blocking `Access` as an `AsyncAccess`.

    Args:
        access: the market.
        turn: makes connections answer one after the other, and lets other tasks run between two events. Without it
            the coroutines never suspend; see `finish`.
    """

    def __init__(self, access: Access, turn: asyncio.Lock | None = None) -> None:
        self._access = access
        self._turn = turn

    @property
    def user(self) -> str:
        return self._access.user

    @property
    def domain(self) -> str:
        return self._access.domain

    @property
    def users(self) -> tuple[str, ...]:
        return self._access.users

    def now(self) -> Instant:
        return self._access.now()

    def new_id(self, kind: str) -> str:
        return self._access.new_id(kind)

    async def open_async(self) -> AsyncLine:
        return LineOverBlocking(self._access.open(), self._turn)

    async def reopen_async(self) -> AsyncLine:
        return LineOverBlocking(self._access.reopen(), self._turn)


class LineOverBlocking:
    """A blocking `Line` as an `AsyncLine`; for `turn` see `OverBlocking`."""

    def __init__(self, line: Line, turn: asyncio.Lock | None = None) -> None:
        self._line = line
        self._turn = turn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)

    async def send(self, request: Request) -> None:
        self._line.send(request)

    async def events(self, request: Request) -> AsyncGenerator[Event, None]:
        async with self._turn or contextlib.nullcontext():
            for event in self._line.events(request):
                yield event
                if self._turn is not None:
                    await asyncio.sleep(0)
