"""Looks whether the XMPP server answers, so that a market says it at once, and no agent has to be read for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from ramp.servers.process import SILENCE, probe_problem

PROBE_S: Final = 2.0
"""Pause between two looks, in seconds; with the limit of a look a server that is gone is told within 5 s."""

LOOK_LIMIT_S: Final = 2.0
"""How long a server may take to answer a look, in seconds."""

SILENT_MAX: Final = 2
"""Looks without any answer before a server counts as gone; it may be busy. One that refuses does so at once."""


class ServerWatch:
    """Watches one market's server.

    Args:
        addresses: host and port of each, at present; where one of them answers all is well.
        domain: XMPP domain of the agents.
        told: is told the problem whenever it has changed; empty where there is none any more.

    Attributes:
        problem: why nobody reaches it, or empty.
    """

    def __init__(
        self, addresses: Callable[[], Sequence[tuple[str, int]]], domain: str, told: Callable[[str], None]
    ) -> None:
        self.problem = ""
        self._addresses = addresses
        self._domain = domain
        self._told = told
        self._silent = 0

    async def run(self) -> None:
        """Look again and again."""
        while True:
            self._take(await asyncio.to_thread(self._look))
            await asyncio.sleep(PROBE_S)

    def _look(self) -> str:
        problem = ""
        for host, port in self._addresses():
            problem = probe_problem(host, port, self._domain, LOOK_LIMIT_S)
            if not problem:
                return ""
        return problem

    def _take(self, found: str) -> None:
        self._silent = self._silent + 1 if found == SILENCE else 0
        if found == SILENCE and self._silent < SILENT_MAX:
            return
        if found != self.problem:
            self.problem = found
            self._told(found)
