"""What a supervisor watches: its server, the certificates of its agents, and the register of invitations."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ramp.control.status import AgentStatus
from ramp.errors import ConfigurationError, RampError
from ramp.runtime.clock import SystemClock
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.runtime.joining.invitations import Register
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.servers.process import SILENCE, probe_problem

LOOK_S: Final = 0.5
"""Pause between two checks of the file in seconds."""

_log = logging.getLogger(__name__)


class RegisterWatch:
    """Follows the register of invitations: passes tokens of accounts to the server, and new members to the bank.

    `give_tokens` gives the server tokens of accounts by local name, None for those to close, and may block.
    """

    def __init__(
        self,
        state: StateFolder,
        give_tokens: Callable[[dict[str, AccountToken | None]], None],
        tell_bank: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._register = Register(state.invitations)
        self._give_tokens = give_tokens
        self._tell_bank = tell_bank
        self._given: dict[str, AccountToken | None] = {}
        self._members = frozenset(entry.invitation.name for entry in self._register.members())

    async def run(self) -> None:
        """Check until cancelled; retry a failure at the next check, and log it once."""
        seen, said = None, ""
        while True:
            if (version := self._register.version) != seen:
                try:
                    await self._follow()
                    seen, said = version, ""
                except (RampError, OSError) as error:
                    if str(error) != said:
                        _log.error("cannot apply the register of invitations: %s", error)
                    said = str(error)
            await asyncio.sleep(LOOK_S)

    async def _follow(self) -> None:
        tokens = self._register.account_tokens(SystemClock().now())
        changed = {name: token for name, token in tokens.items() if self._given.get(name, "") != token}
        if changed:
            await asyncio.to_thread(self._give_tokens, changed)
            self._given.update(changed)
        members = frozenset(entry.invitation.name for entry in self._register.members())
        if members != self._members:
            await self._tell_bank()
            self._members = members


PROBE_S: Final = 2.0
"""Pause between two checks in seconds; with the timeout of a check, a failure is reported within 5 s."""

LOOK_LIMIT_S: Final = 2.0
"""Timeout of a check in seconds."""

SILENT_MAX: Final = 2
"""Checks without an answer before a server counts as failed, because it may be busy; a refusal counts at once."""


class ServerWatch:
    """Watches a market's servers, of which one that answers is enough.

    `told` is called with the problem when it has changed; empty when it is solved.

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


class KeyWatch:
    """Looks for agents with a revoked certificate: others do not believe them, whatever their processes report.

    `ramp keys` changes the folder of keys while the market runs.
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
