"""The way to one's User Agent in a running market."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ramp.agents.supervise import status
from ramp.cli.output import waiting
from ramp.errors import ConfigurationError, RampError, TransportError
from ramp.runtime.control_client import ControlClient
from ramp.runtime.state_folder import StateFolder

RECONNECT_LIMIT_S: Final = 60.0
"""How long a User Agent that ended in the middle of a request is waited for, in seconds."""

RECONNECT_PAUSE_S: Final = 0.2
"""Pause between two tries, in seconds."""


@dataclass(frozen=True, slots=True)
class Market:
    """A running market, seen by one of its users.

    Attributes:
        state: its state folder.
        user: local name of the user.
        domain: XMPP domain of its agents.
        users: local names of all users.
    """

    state: StateFolder
    user: str
    domain: str
    users: tuple[str, ...]

    def connect(self) -> ControlClient:
        """A new connection to the User Agent.

        Raises:
            TransportError: if it does not listen; says why where the supervisor knows.
        """
        try:
            return ControlClient(self.state.socket(self.user))
        except TransportError as error:
            found = status(self.state) or {"agents": []}
            for agent in found["agents"]:
                if agent["name"] == self.user and agent["state"] != "ready":
                    detail = f": {agent['detail']}" if agent["detail"] else ""
                    raise TransportError(f"{self.user} is {agent['state']}{detail}") from error
            raise

    def reconnect(self) -> ControlClient:
        """A connection to a User Agent that has just ended and is being restarted.

        Raises:
            TransportError: if the market has ended, or the agent does not come back.
        """
        end = time.monotonic() + RECONNECT_LIMIT_S
        while True:
            try:
                return self.connect()
            except TransportError:
                if status(self.state) is None:
                    raise TransportError("the market has ended; `ramp up` takes its open business up again") from None
                if time.monotonic() > end:
                    raise
            time.sleep(RECONNECT_PAUSE_S)

    def ask(self, request: dict[str, Any], what: str) -> dict[str, Any]:
        """The last event of a request.

        Args:
            request: the verb with its arguments.
            what: what goes on meanwhile, for the terminal.

        Raises:
            RampError: if the agent answers with an error, by its exit code.
        """
        with waiting(what), self.connect() as client:
            return checked(client.answer(request))

    def short(self, address: str) -> str:
        """An agent's name without the market's own domain; names of other domains stay whole."""
        return address.removesuffix(f"@{self.domain}")


def checked(event: dict[str, Any]) -> dict[str, Any]:
    """An event that is no error.

    Raises:
        ConfigurationError: for an error that is the caller's.
        TransportError: for any other.
    """
    if event["event"] != "error":
        return event
    if event["exit_code"] == ConfigurationError.exit_code:
        raise ConfigurationError(event["reason"])
    raise TransportError(event["reason"])


def open_market(state: StateFolder, user: str | None) -> Market:
    """Find the market of a state folder.

    Args:
        state: its state folder.
        user: as which user, or None for the first.

    Raises:
        TransportError: if none is running.
        ConfigurationError: if it has no such user.
    """
    found = status(state)
    if found is None:
        raise TransportError(f"no market is running with the state folder {state.path}; `ramp up` launches one")
    users = tuple(agent["name"] for agent in found["agents"] if agent["role"] == "user")
    domain = _domain(Path(found["config"]))
    name = users[0] if user is None else user.removesuffix(f"@{domain}")
    if name not in users:
        raise ConfigurationError(f"no user is called {user!r}; there are {', '.join(users)}")
    return Market(state, name, domain, users)


def _domain(config: Path) -> str:
    """Domain of the running market; a configuration that was broken meanwhile only costs the short names."""
    from ramp.runtime.config_file import load_config

    try:
        return load_config(config).domain
    except RampError:
        return ""
