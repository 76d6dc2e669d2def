"""Checks whether the XMPP server answers, so that the market reports a failure at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from ramp.servers.process import SILENCE, probe_problem

PROBE_S: Final = 2.0
"""Pause between two checks in seconds; with the timeout of a check, a failure is reported within 5 s."""

LOOK_LIMIT_S: Final = 2.0
"""Timeout of a check in seconds."""

SILENT_MAX: Final = 2
"""Checks without an answer before a server counts as failed, because it may be busy; a refusal counts at once."""


class ServerWatch:
    """Watches a market's server.

    Args:
        addresses: returns host and port of each server; one that answers is enough.
        domain: XMPP domain of the agents.
        told: called with the problem when it has changed; empty when it is solved.

    Attributes:
        problem: the current problem, or empty.
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
