"""The seller's side of bundles: the agents of one process, one of which accepts calls for all.

Each machine keeps its own agent, name, journal, keys and connection. The accepting agent passes each call to the
machine's own agent. The immediate answers return as one bundle, each with its machine's seal. A machine that needs time
answers later by itself, and one that fails does not answer, as without bundles.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from ramp.rfql.encoded_message import EncodedMessage


class SiteMember(Protocol):
    """The interface of a resource's agent for its site."""

    @property
    def speaks(self) -> bool:
        """Whether this agent can answer for the others now."""
        ...

    def answers(self, message: EncodedMessage) -> list[EncodedMessage]:
        """Handle a message from its authenticated peer, and return the immediate answers with this machine as peer."""
        ...


class Site:
    """The machines of one process."""

    def __init__(self) -> None:
        self._members: dict[str, SiteMember] = {}

    def join(self, name: str, member: SiteMember) -> None:
        """Add the running agent with an address."""
        self._members[name] = member

    def leave(self, name: str, member: SiteMember) -> None:
        """Remove an agent, but not a successor with the same name."""
        if self._members.get(name) is member:
            del self._members[name]

    @property
    def spokesman(self) -> str:
        """Address of the agent that accepts calls for all; empty with fewer than two running agents."""
        up = [name for name, member in self._members.items() if member.speaks]
        return up[0] if len(up) > 1 else ""

    def answers(self, user: str, messages: Iterable[EncodedMessage]) -> list[EncodedMessage]:
        """Pass messages of a user to the machines and return their immediate answers; unknown machines give none."""
        found: list[EncodedMessage] = []
        for message in messages:
            member = self._members.get(message.peer)
            if member is not None:
                found += member.answers(replace(message, peer=user))
        return found
