"""Where a market is, and how its agents and its supervisor are reached: by sockets in its state folder."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from ramp.control.codec import LINE_BYTES_MAX, VERSION, decode_event, encode_request
from ramp.control.events import Event, Last, MarketRefusalCode, Refused, Welcome, market_refused
from ramp.control.requests import EVERYTHING, Hello, Request, ShowStatus
from ramp.control.status import SwarmStatus
from ramp.errors import (
    START_AGAIN,
    ConfigurationError,
    ControlLineError,
    MarketRefused,
    NoMarket,
    TransportError,
    wrong_version,
)
from ramp.model.instant import Instant
from ramp.runtime.clock import SystemClock
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.state_folder import StateFolder, socket_address

RECONNECT_LIMIT_S: Final = 60.0
"""How long a User Agent that ended in the middle of a request is waited for, in seconds."""

RECONNECT_PAUSE_S: Final = 0.2
"""Pause between two tries, in seconds."""

STATUS_LIMIT_S: Final = 10.0
"""How long a supervisor may take to answer, in seconds."""


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


class SocketLine(contextlib.AbstractAsyncContextManager["SocketLine"]):
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


class Access(Protocol):
    """A market, seen by one of its users."""

    @property
    def user(self) -> str:
        """Local name of the user."""
        ...

    @property
    def domain(self) -> str:
        """Domain of the agents' names, or ""."""
        ...

    def now(self) -> Instant:
        """The market's time."""
        ...

    def new_id(self, kind: str) -> str:
        """An identifier that never repeats; see `ramp.model.ports.IdSource`."""
        ...

    async def open(self) -> Line:
        """A new connection to the User Agent.

        Raises:
            TransportError: if it does not listen; says why where that is known.
        """
        ...

    async def reopen(self) -> Line:
        """A connection to a User Agent that has just ended and is being restarted.

        Raises:
            TransportError: if the market has ended, or the agent does not come back.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunningMarket:
    """A market that runs in processes, with a state folder; an `Access`."""

    state: StateFolder
    user: str
    domain: str

    def now(self) -> Instant:
        return SystemClock().now()

    def new_id(self, kind: str) -> str:
        return RandomIds().new(kind)

    async def open(self) -> Line:
        try:
            return await SocketLine.open(self.state.socket(self.user))
        except NoMarket as error:
            raise self._why_not() or error from error

    async def reopen(self) -> Line:
        end = time.monotonic() + RECONNECT_LIMIT_S
        while True:
            try:
                return await self.open()
            except TransportError:
                if status(self.state) is None:
                    raise NoMarket(
                        "the market has stopped; `ramp up` starts it again and continues its open requests"
                    ) from None
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(RECONNECT_PAUSE_S)

    def _why_not(self) -> TransportError | None:
        found = status(self.state)
        agent = found.agent(self.user) if found is not None else None
        if agent is None or agent.is_up:
            return None
        return TransportError(f"{self.user} is {agent.state}{f': {agent.detail}' if agent.detail else ''}")


def find_market(state: StateFolder, user: str | None) -> RunningMarket:
    """Find the market of a state folder.

    Raises:
        NoMarket: if none is running.
        ConfigurationError: if it has no such user.
    """
    found = running(state)
    users = found.names("user")
    name = users[0] if user is None and users else (user or "").removesuffix(f"@{found.domain}")
    if name not in users:
        raise ConfigurationError(f"unknown user {user!r}: expected one of {', '.join(users)}")
    return RunningMarket(state, name, found.domain)


def running(state: StateFolder) -> SwarmStatus:
    """Return the status of the market of a state folder; raises `NoMarket` if none is running."""
    found = status(state)
    if found is None:
        raise NoMarket(f"no market is running with the state folder {state.path}; start one with `ramp up`")
    return found


def status(state: StateFolder) -> SwarmStatus | None:
    """Ask the supervisor of a state folder for the status of its market; return None without one.

    Raises:
        ConfigurationError: if the folder of the control sockets is not the user's own alone.
        MarketRefused: if the supervisor is of another version.
        TransportError: if it does not answer.
    """
    try:
        if not state.sockets.exists():
            return None
    except OSError as error:  # no folder can have such a name
        raise ConfigurationError(f"the state folder cannot be read: {error.strerror}", path=state.path) from error
    with socket_address(state.supervisor_socket) as address, socket.socket(socket.AF_UNIX) as line:
        line.settimeout(STATUS_LIMIT_S)
        try:
            line.connect(address)
        except OSError:
            return None
        try:
            line.sendall(encode_request(Hello(VERSION)) + encode_request(ShowStatus()))
            with line.makefile("rb") as answer:
                welcome, found = answer.readline(), answer.readline()
        except TimeoutError as error:
            pid = int.from_bytes(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)
            reason = f"the supervisor (process {pid}) does not answer within {STATUS_LIMIT_S:g} s"
            raise TransportError(reason) from error
        except OSError:
            return None
    if not welcome:  # it has just ended
        return None
    check_welcome(welcome)
    answered = decode_event(found) if found else None
    return answered if isinstance(answered, SwarmStatus) else None
