"""Revoked certificates in the status of a market."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ramp.control.status import AgentStatus
from ramp.errors import ConfigurationError
from ramp.runtime.keys.store import KeyStore


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
