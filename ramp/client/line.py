"""Connections to an agent, which take requests and return typed events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ramp.control.codec import LINE_BYTES_MAX, VERSION, decode_event, encode_request
from ramp.control.events import Event, Last, MarketRefusalCode, Refused, Welcome, market_refused
from ramp.control.requests import EVERYTHING, Hello, Request
from ramp.errors import START_AGAIN, ControlLineError, MarketRefused, NoMarket, TransportError, wrong_version
from ramp.runtime.state_folder import socket_address


class Line(contextlib.AbstractAsyncContextManager["Line"], Protocol):
    """A connection; a context manager that closes it. Submitted requests continue without it."""

    def events(self, request: Request) -> AsyncGenerator[Event, None]:
        """Send a request and yield its events up to and including the last; `EVERYTHING` has no last event.

        Raises:
            TransportError: if the agent ends before that; it continues decided requests after its restart, and
                `Watch` finds them.
            ControlLineError: if it sends an invalid event.
        """
        ...


class SocketLine:
    """A connection to an agent's control socket; `open` makes one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Connect to a socket.

        Raises:
            NoMarket: if no agent listens there.
            ConfigurationError: if the socket's folder is not the user's own alone.
            MarketRefused: if the agent speaks another version.
        """
        try:
            path.parent.lstat()  # without the folder there is no market
            with socket_address(path) as address:
                reader, writer = await asyncio.open_unix_connection(address, limit=LINE_BYTES_MAX)
        except OSError as error:
            reason = f"no market is running at {path} ({error.strerror}); start one with `ramp up`"
            raise NoMarket(reason) from error
        line = cls(reader, writer)
        try:
            await line._send(Hello(VERSION))
            check_welcome(await line._read())
        except BaseException:
            await line.close()
            raise
        return line

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _send(self, request: Request) -> None:
        try:
            self._writer.write(encode_request(request))
            await self._writer.drain()
        except OSError as error:
            raise _ended() from error

    async def events(self, request: Request) -> AsyncGenerator[Event, None]:
        await self._send(request)
        while True:
            event = decode_event(await self._read())
            yield event
            if ends(request, event):
                return

    async def _read(self) -> bytes:
        try:
            line = await self._reader.readline()
        except (OSError, ValueError) as error:  # ValueError: a line without end
            raise _ended() from error
        if not line.endswith(b"\n"):
            raise _ended()
        return line


def ends(request: Request, event: Event) -> bool:
    """Return whether an event is the last of an answer; where everything is watched, only a refusal is."""
    return isinstance(event, Refused if request == EVERYTHING else Last)


def refused(event: Refused) -> MarketRefused:
    """Convert a refusal to an exception."""
    return market_refused(event.code, event.reason)


def check_welcome(line: bytes) -> None:
    """Check an agent's first line; raises `MarketRefused` if it speaks another version."""
    try:
        event = decode_event(line)
    except ControlLineError as error:
        raise _other_version(f"no welcome ({error})") from error
    if isinstance(event, Refused):
        raise refused(event)
    if not isinstance(event, Welcome) or event.version != VERSION:
        raise _other_version(event.version if isinstance(event, Welcome) else "no welcome")


def _other_version(got: object) -> MarketRefused:
    reason = wrong_version("the control channel", got, VERSION, START_AGAIN)
    return MarketRefused(MarketRefusalCode.OTHER_VERSION, reason, exit_code=2)


def _ended() -> TransportError:
    return TransportError("the User Agent ended during the request; see the result with `ramp status`")
