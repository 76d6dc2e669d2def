"""The seller's side: the agents of one process, any of which takes calls for all of them.

Each machine keeps its own agent, name, journal, keys and connection. One is spoken to for all: it hands every call to
the machine's own agent, and what those answer at once goes back together, each answer the machine's own, with its seal.
A machine that needs time, or fails, is answered for by itself, or not at all, as it would be without the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ramp.model.acl import Message
from ramp.xmpp.bundles import Part


class SiteMember(Protocol):
    """A resource's agent as its site sees it."""

    @property
    def speaks(self) -> bool:
        """Whether others can be answered for by this agent just now."""
        ...

    def answer_together(self, user: str, part: Part) -> list[Message]:
        """Take a message that came through another agent of the site.

        Args:
            user: who has sent it, as the transport authenticated it.
            part: what has come for this machine.

        Returns:
            What goes back to the user at once; everything else is sent as ever.
        """
        ...

    def written(self, message: Message) -> Part | None:
        """An answer as it travels in a bundle; None where it cannot be written."""
        ...


class Site:
    """The machines of one process."""

    def __init__(self) -> None:
        self._members: dict[str, SiteMember] = {}

    def join(self, name: str, member: SiteMember) -> None:
        """A resource's agent is up.

        Args:
            name: its address.
            member: the agent.
        """
        self._members[name] = member

    def leave(self, name: str, member: SiteMember) -> None:
        """It ends; a successor of the same name stays."""
        if self._members.get(name) is member:
            del self._members[name]

    @property
    def spokesman(self) -> str:
        """Address of the agent who is spoken to for all, or an empty string where there are not two of them."""
        up = [name for name, member in self._members.items() if member.speaks]
        return up[0] if len(up) > 1 else ""

    def answers(self, user: str, parts: Iterable[Part]) -> list[Part]:
        """What all machines answer at once to what was said to them together.

        Args:
            user: who has said it.
            parts: what was said; what is for nobody here gets no answer.
        """
        found: list[Part] = []
        for part in parts:
            member = self._members.get(part.machine)
            for message in member.answer_together(user, part) if member is not None else ():
                written = member.written(message) if member is not None else None
                if written is not None:
                    found.append(written)
        return found
