"""What is up, told by the supervisor to whoever asks, and written to `run/swarm.json` for those who find nobody there.

A full disk keeps the file from being written, and it would go on telling of better times; the socket needs no room, so
what is told there stays true.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace

from ramp.control.status import SwarmStatus, status_object
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.runtime.storage_errors import reason_of

_log = logging.getLogger(__name__)


class StatusBoard:
    """Publishes one swarm's status.

    Args:
        state: the swarm's state folder.
        describe: says what is up at present.
    """

    def __init__(self, state: StateFolder, describe: Callable[[], SwarmStatus]) -> None:
        self._state = state
        self._describe = describe
        self._unwritten = ""
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Open the socket; where that cannot be, there is the file alone."""
        path = self._state.status_socket
        try:
            path.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(self._answer, str(path))
            path.chmod(0o600)
        except OSError as error:
            _log.error("%s cannot be made: %s; there is the status file alone", path, reason_of(error))

    def close(self) -> None:
        """Nothing is up any more."""
        if self._server is not None:
            self._server.close()
        for path in (self._state.status_file, self._state.status_socket):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._state.leave_sockets()

    def publish(self) -> None:
        """Write the file; that it cannot be is noted in what the socket tells, and tried again by `retry`."""
        path = self._state.status_file
        try:
            write_private(path, json.dumps(status_object(self._describe()), indent=1))
        except OSError as error:
            if not self._unwritten:
                _log.error("%s cannot be written: %s", path, reason_of(error))
            self._unwritten = reason_of(error)
        else:
            self._unwritten = ""

    def retry(self) -> None:
        """Write the file if that has failed before."""
        if self._unwritten:
            self.publish()

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        note = f"{self._state.status_file.name} cannot be written: {self._unwritten}" if self._unwritten else ""
        with contextlib.suppress(OSError):
            writer.write(json.dumps(status_object(replace(self._describe(), note=note))).encode())
            await writer.drain()
        writer.close()
