"""The client of a User Agent's control channel (`ramp.agents.control`): blocking, for the command line and scripts."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ramp.errors import TransportError
from ramp.runtime.state_folder import check_private

LAST_EVENTS: Final = frozenset(
    {"request_ended", "cancellation_ended", "query_answered", "requests", "agreements", "done", "error"}
)
"""Events after which nothing more comes for a request."""


class ControlClient:
    """One connection to a User Agent.

    Args:
        path: the agent's control socket.

    Raises:
        TransportError: if no agent listens there.
        ConfigurationError: if the socket's folder is not the user's own alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.parent.exists():
            check_private(path.parent)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise TransportError(
                f"no market is running there ({path}: {error.strerror}); `ramp up` launches one"
            ) from error
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was submitted goes on."""
        self._file.close()
        self._socket.close()

    def send(self, request: dict[str, Any]) -> None:
        """Send one line: a request, or the answer to `approval_asked` (`{"approved": true}`)."""
        self._socket.sendall(json.dumps(request, separators=(",", ":")).encode() + b"\n")

    def events(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request and yield its events; the last one is of `LAST_EVENTS`.

        Raises:
            TransportError: if the agent ends before the last event; what it had decided it takes up again when it is
                restarted, and `watch` finds it.
        """
        self.send(request)
        for line in self._file:
            event: dict[str, Any] = json.loads(line)
            yield event
            if event["event"] in LAST_EVENTS:
                return
        raise TransportError("the User Agent ended in the middle of the request; `ramp status` tells what became of it")

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The last event of a request.

        Raises:
            TransportError: if the agent ends first.
        """
        *_, last = self.events(request)
        return last
