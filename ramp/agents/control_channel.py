"""Control channels: commands of an owner to its agent over a Unix socket, as defined in `ramp.control`.

Access to the socket is the only authorisation; only the owner can read its folder. A client first sends its version.
Each further line is a request. The agent answers it with events, and the last event ends the answer.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from ramp.control.codec import REQUEST_BYTES_MAX, VERSION, decode_request, encode_event
from ramp.control.events import Event, MarketRefusalCode, Refused, Welcome, refusal
from ramp.control.requests import Hello, Request, wire_name
from ramp.errors import START_AGAIN, ControlLineError, RampError, wrong_version
from ramp.runtime.configuration_changes.audit_log import peer_name
from ramp.runtime.logs import brief
from ramp.runtime.state_folder import socket_address

_log = logging.getLogger(__name__)


class ControlSocket(abc.ABC):
    """Serves a control socket for the agent `name`; subclasses define the answers."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @abc.abstractmethod
    def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        """Yield the answer to a request; nothing if this agent does not serve it.

        `reader` has further lines from the client; `who` is the system's user that asks, as the kernel states it.
        """

    async def start(self) -> None:
        """Open the socket and replace a stale one; `ConfigurationError` if other users can access its folder."""
        with socket_address(self._path) as address:
            self._server = await asyncio.start_unix_server(self._serve, address, limit=REQUEST_BYTES_MAX)
        self._path.chmod(0o600)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._clients):
            task.cancel()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if await self._greeted(reader, writer):
                while line := await reader.readline():
                    await self._answer(line, reader, writer)
        except (OSError, ValueError, asyncio.CancelledError) as error:
            _log.info("control connection ended: %r", error)
        finally:
            self._clients.discard(task)
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line = await reader.readline()
        if not line:
            return False
        try:
            hello = decode_request(line)
        except ControlLineError as error:
            await _write(writer, Refused(MarketRefusalCode.NOT_UNDERSTOOD, str(error)))
            return False
        if not isinstance(hello, Hello) or hello.version != VERSION:
            got = hello.version if isinstance(hello, Hello) else None
            reason = wrong_version("the control channel", got, VERSION, START_AGAIN)
            await _write(writer, Refused(MarketRefusalCode.OTHER_VERSION, reason))
            return False
        await _write(writer, Welcome(VERSION, self._name))
        return True

    async def _answer(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = decode_request(line)
        except ControlLineError as error:
            await _write(writer, Refused(MarketRefusalCode.NOT_UNDERSTOOD, str(error)))
            return
        said, verb = False, wire_name(type(request))
        try:
            async for event in self.answer(request, reader, peer_name(writer.get_extra_info("socket"))):
                said = True
                await _write(writer, event)
            if not said:
                reason = f"{self._name} does not serve the verb {verb}"
                await _write(writer, Refused(MarketRefusalCode.NOT_UNDERSTOOD, reason))
        except RampError as error:
            await _write(writer, refusal(error))
        except ConnectionError:  # the client has disconnected
            raise
        except Exception as error:  # a bug ends at this request
            _log.error("control request %s failed: %s", verb, brief(error))
            reason = f"{verb}: internal error of the agent: {brief(error)}"
            await _write(writer, Refused(MarketRefusalCode.AGENT_FAILED, reason))


async def _write(writer: asyncio.StreamWriter, event: Event) -> None:
    writer.write(encode_event(event))
    await writer.drain()
