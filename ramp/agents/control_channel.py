"""A control channel: an owner's commands to its agent over a Unix socket, as JSON lines.

The socket's folder is readable by the owner only, which is all the authority there is: whoever can open it speaks for
the agent. Every line a client sends is one request with a `verb`; the answers are lines with an `event`. A request that
takes a while streams its progress and ends with one of `ramp.runtime.control_client.LAST_EVENTS`.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ramp.agents.party_agent import brief
from ramp.agents.roles import CommandedAgent
from ramp.errors import RampError
from ramp.model.contents import AccountQueryRefused, KeeperRefused
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.record_json import to_plain
from ramp.runtime.state_folder import check_private

LINE_BYTES_MAX: Final = 1_000_000
"""Longest request line; a document is at most a tenth of it."""

EVENT_NAMES: Final[dict[type, str]] = {
    pr.RoundOpened: "round_opened",
    pr.RoundClosed: "round_closed",
    pr.ApprovalAsked: "approval_asked",
    pr.UnitAdvanced: "unit_advanced",
    pr.RequestEnded: "request_ended",
    pr.CancellationEnded: "cancellation_ended",
    pr.QueryAnswered: "query_answered",
}

Verbs = Mapping[str, Callable[[Any, asyncio.StreamReader], AsyncIterator[dict[str, Any]]]]

_log = logging.getLogger(__name__)


class ControlChannel(abc.ABC):
    """Serves one agent's control socket; subclasses say which verbs there are.

    Args:
        agent: the agent.
        path: where the socket is.
    """

    def __init__(self, agent: CommandedAgent, path: Path) -> None:
        self._commanded = agent
        self._path = path
        self._ids = RandomIds()
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @abc.abstractmethod
    def verbs(self) -> Verbs:
        """What may be asked for: of each verb, what answers it."""

    async def start(self) -> None:
        """Open the socket; a stale one of an earlier life is replaced.

        Raises:
            ConfigurationError: if its folder is not the user's own alone.
        """
        check_private(self._path.parent)
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(self._path), limit=LINE_BYTES_MAX)
        self._path.chmod(0o600)

    async def stop(self) -> None:
        """Close the socket and all connections."""
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
            while line := await reader.readline():
                await self._answer(line, reader, writer)
        except (OSError, ValueError, asyncio.CancelledError) as error:
            _log.info("control connection ended: %r", error)
        finally:
            self._clients.discard(task)
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()

    async def _answer(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(line)
            verb = request["verb"]
            handler = self.verbs()[verb]
        except (ValueError, KeyError, TypeError):
            await _write(writer, {"event": "error", "exit_code": 2, "reason": "not a known control request"})
            return
        try:
            async for answer in handler(request, reader):
                await _write(writer, answer)
        except RampError as error:
            await _write(writer, {"event": "error", "exit_code": error.exit_code, "reason": str(error)})
        except (KeyError, TypeError, ValueError) as error:
            await _write(writer, {"event": "error", "exit_code": 2, "reason": f"{verb}: {error!r}"})
        except Exception as error:  # a bug ends at this request
            _log.error("control request %s failed: %s", verb, brief(error))
            reason = f"{verb}: a fault of the agent: {brief(error)}"
            await _write(writer, {"event": "error", "exit_code": 1, "reason": reason})

    async def _ask(self, query_id: str, command: ev.Command) -> AsyncIterator[dict[str, Any]]:
        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.QueryAnswered) and progress.query_id == query_id

        async with self._progress(wanted) as queue:
            await self._commanded.command(command)
            progress = await queue.get()
        assert isinstance(progress, pr.QueryAnswered)
        if progress.answer is None:
            yield {"event": "error", "exit_code": 1, "reason": "no answer came; is the agent up? `ramp ps` tells"}
        elif isinstance(progress.answer, AccountQueryRefused | KeeperRefused):
            refused = progress.answer
            yield {"event": "error", "exit_code": 1, "reason": f"the bank refuses: {refused.detail or refused.code}"}
        else:
            yield self._event(progress)

    @contextlib.asynccontextmanager
    async def _progress(self, wanted: Callable[[pr.Progress], bool]) -> AsyncIterator[asyncio.Queue[pr.Progress]]:
        queue: asyncio.Queue[pr.Progress] = asyncio.Queue()

        def watcher(progress: pr.Progress) -> None:
            if wanted(progress):
                queue.put_nowait(progress)

        self._commanded.watchers.add(watcher)
        try:
            yield queue
        finally:
            self._commanded.watchers.discard(watcher)

    def _event(self, progress: pr.Progress) -> dict[str, Any]:
        return {"event": EVENT_NAMES[type(progress)], **to_plain(progress)}


async def _write(writer: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
    await writer.drain()
