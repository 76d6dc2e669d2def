"""`/metrics`: the metrics of a market, for clients with the token in its state folder.

Balances are confidential and other people may have accounts on the same computer, so loopback alone is not enough.
Prometheus reads the token from a file (`authorization.credentials_file`) and sends it as in RFC 6750, 2.1.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ramp.client.every_user import EveryUser, WatchUser
from ramp.errors import ConfigurationError
from ramp.runtime.state_folder import read_private, write_private
from ramp.web.metrics.counted import Counted
from ramp.web.metrics.levels import Levels, LevelsCollector

TOKEN_BYTES: Final = 32
"""Random bytes of a token, written in base64url."""

TOKEN_LEAST: Final = 20
"""Minimum length of a token in characters."""


class MetricsEndpoint:
    """Serves metrics; counting starts with the first collection, so that it costs nothing without one.

    Args:
        token: what has to be shown.
        read: how the market stands.
        watch: begins to watch a user's requests.
    """

    def __init__(self, token: str, read: Callable[[], Awaitable[Levels]], watch: WatchUser) -> None:
        self._token = token.encode()
        self._read = read
        registry = CollectorRegistry()
        counted = Counted(registry)
        self._levels = LevelsCollector()
        registry.register(self._levels)
        self._registry = registry
        self._users = EveryUser(watch, lambda _, event: counted.take(event))

    async def answer(self, request: Request) -> Response:
        if not self._may(request.headers.get("authorization", "")):
            return PlainTextResponse(
                "expected Authorization: Bearer TOKEN, with the token in metrics-token of the market's state folder\n",
                status_code=401,
                headers={"www-authenticate": 'Bearer realm="RAMP metrics"'},
            )
        text = await self.collect()
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    async def collect(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        levels = await self._read()
        self._levels.levels = levels
        if levels.status is not None:
            self._users.keep(levels.status.names("user"))
        await asyncio.sleep(0)  # what has just been begun is under way
        return generate_latest(self._registry)

    async def end(self) -> None:
        await self._users.end()

    def _may(self, authorization: str) -> bool:
        scheme, _, shown = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), self._token)


def metrics_token(path: Path) -> str:
    """Return the token of a market; create its file if it does not exist.

    Args:
        path: its file.

    Raises:
        ConfigurationError: if others may read the file, or its text is too short for a token.
    """
    if not path.exists():
        write_private(path, f"{secrets.token_urlsafe(TOKEN_BYTES)}\n")
    found = read_private(path, "token of /metrics")
    if len(found) < TOKEN_LEAST:
        raise ConfigurationError(
            f"the token needs {TOKEN_LEAST} characters or more, got {len(found)}; remove the file",
            path=path,
        )
    return found
