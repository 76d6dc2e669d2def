"""The seller's side of bundles: the agents of one process, one of which accepts calls for all.

Each machine keeps its own agent, name, journal, keys and connection. The accepting agent passes each call to the
machine's own agent. The immediate answers return as one bundle, each with its machine's seal. A machine that needs time
answers later by itself, and one that fails does not answer, as without bundles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ramp.model.acl import Message
from ramp.xmpp.bundles import Part


class SiteMember(Protocol):
    """The interface of a resource's agent for its site."""

    @property
    def speaks(self) -> bool:
        """Whether this agent can answer for the others now."""
        ...

    def answer_together(self, user: str, part: Part) -> list[Message]:
        """Handle a message for this machine from a user (address as authenticated) and return the immediate answers."""
        ...

    def written(self, message: Message) -> Part | None:
        """Encode an answer for a bundle; None if that fails."""
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

    def answers(self, user: str, parts: Iterable[Part]) -> list[Part]:
        """Pass messages of a user to the machines and return their immediate answers; unknown machines give none."""
        found: list[Part] = []
        for part in parts:
            member = self._members.get(part.machine)
            for message in member.answer_together(user, part) if member is not None else ():
                written = member.written(message) if member is not None else None
                if written is not None:
                    found.append(written)
        return found
