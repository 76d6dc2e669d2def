"""Where a market is and how its agents are reached; a running market's agents listen in its state folder."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final, Protocol

from ramp.client.line import Line, SocketLine
from ramp.client.swarm import status
from ramp.control.status import SwarmStatus
from ramp.errors import ConfigurationError, NoMarket, TransportError
from ramp.model.instant import Instant
from ramp.runtime.clock import SystemClock
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.state_folder import StateFolder

RECONNECT_LIMIT_S: Final = 60.0
"""How long a User Agent that ended in the middle of a request is waited for, in seconds."""

RECONNECT_PAUSE_S: Final = 0.2
"""Pause between two tries, in seconds."""


class Access(Protocol):
    """A market, seen by one of its users."""

    @property
    def user(self) -> str:
        """Local name of the user."""
        ...

    @property
    def domain(self) -> str:
        """Domain of the agents' names, or ""."""
        ...

    def now(self) -> Instant:
        """The market's time."""
        ...

    def new_id(self, kind: str) -> str:
        """An identifier that never repeats; see `ramp.model.ports.IdSource`."""
        ...

    async def open(self) -> Line:
        """A new connection to the User Agent.

        Raises:
            TransportError: if it does not listen; says why where that is known.
        """
        ...

    async def reopen(self) -> Line:
        """A connection to a User Agent that has just ended and is being restarted.

        Raises:
            TransportError: if the market has ended, or the agent does not come back.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunningMarket:
    """A market that runs in processes, with a state folder; an `Access`."""

    state: StateFolder
    user: str
    domain: str

    def now(self) -> Instant:
        return SystemClock().now()

    def new_id(self, kind: str) -> str:
        return RandomIds().new(kind)

    async def open(self) -> Line:
        try:
            return await SocketLine.open(self.state.socket(self.user))
        except NoMarket as error:
            raise self._why_not() or error from error

    async def reopen(self) -> Line:
        end = time.monotonic() + RECONNECT_LIMIT_S
        while True:
            try:
                return await self.open()
            except TransportError:
                if status(self.state) is None:
                    raise NoMarket(
                        "the market has stopped; `ramp up` starts it again and continues its open requests"
                    ) from None
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(RECONNECT_PAUSE_S)

    def _why_not(self) -> TransportError | None:
        found = status(self.state)
        agent = found.agent(self.user) if found is not None else None
        if agent is None or agent.is_up:
            return None
        return TransportError(f"{self.user} is {agent.state}{f': {agent.detail}' if agent.detail else ''}")


def find_market(state: StateFolder, user: str | None) -> RunningMarket:
    """Find the market of a state folder.

    Raises:
        NoMarket: if none is running.
        ConfigurationError: if it has no such user.
    """
    found = running(state)
    users = found.names("user")
    name = users[0] if user is None and users else (user or "").removesuffix(f"@{found.domain}")
    if name not in users:
        raise ConfigurationError(f"unknown user {user!r}: expected one of {', '.join(users)}")
    return RunningMarket(state, name, found.domain)


def running(state: StateFolder) -> SwarmStatus:
    """Return the status of the market of a state folder; raises `NoMarket` if none is running."""
    found = status(state)
    if found is None:
        raise NoMarket(f"no market is running with the state folder {state.path}; start one with `ramp up`")
    return found
