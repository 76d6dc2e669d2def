"""The status of a market: the supervisor answers at a socket and writes it to `run/swarm.json`.

Readers use the file if no supervisor answers. A full disk may leave the file outdated; the socket needs no disk space
and is always current.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ramp.control.status import AgentStatus, SwarmStatus, status_object
from ramp.errors import ConfigurationError
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.runtime.storage_errors import reason_of

_log = logging.getLogger(__name__)


class StatusBoard:
    """Publishes the market's current status, which `describe` returns."""

    def __init__(self, state: StateFolder, describe: Callable[[], SwarmStatus]) -> None:
        self._state = state
        self._describe = describe
        self._unwritten = ""
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Open the socket; if that fails, only the file has the status."""
        path = self._state.status_socket
        try:
            path.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(self._answer, str(path))
            path.chmod(0o600)
        except OSError as error:
            _log.error("cannot create %s: %s; only the status file is available", path, reason_of(error))

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for path in (self._state.status_file, self._state.status_socket):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._state.leave_sockets()

    def publish(self) -> None:
        """Write the file; the socket reports a failure, and `retry` writes again."""
        path = self._state.status_file
        try:
            write_private(path, json.dumps(status_object(self._describe()), indent=1))
        except OSError as error:
            if not self._unwritten:
                _log.error("cannot write %s: %s", path, reason_of(error))
            self._unwritten = reason_of(error)
        else:
            self._unwritten = ""

    def retry(self) -> None:
        if self._unwritten:
            self.publish()

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        note = f"{self._state.status_file.name} cannot be written: {self._unwritten}" if self._unwritten else ""
        with contextlib.suppress(OSError):
            writer.write(json.dumps(status_object(replace(self._describe(), note=note))).encode())
            await writer.drain()
        writer.close()


class KeyWatch:
    """Looks for agents with a revoked certificate: others do not believe them, whatever their processes report.

    `ramp keys` changes the keys while the market runs.

    Args:
        keys: folder of the keys.
    """

    def __init__(self, keys: Path) -> None:
        self._store = KeyStore(keys)
        self._revoked: frozenset[str] = frozenset()

    def look(self, agents: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Look at the certificates of agents, given by name and address; return the names that changed."""
        before, self._revoked = self._revoked, frozenset(name for name, address in agents if self._is_revoked(address))
        return before ^ self._revoked

    def _is_revoked(self, address: str) -> bool:
        with contextlib.suppress(ConfigurationError, OSError):
            certificate = self._store.certificate_on_file(address)
            return certificate is not None and self._store.is_revoked(certificate)
        return False

    def shown(self, agent: AgentStatus) -> AgentStatus:
        """Return the status to show: `broken` while the agent's certificate is revoked, unless its process says why."""
        if agent.name not in self._revoked or agent.state == "broken":
            return agent
        detail = f"its certificate is revoked; `ramp keys renew {agent.name} --new-key` lets it back"
        return replace(agent, state="broken", detail=detail, is_up=False)
