"""Bundles: one stanza for several machines of a site, as its buyer and its seller handle them.

A machine names an agent that accepts messages for several machines of its site in a field of the offers that it sends
itself. The buyer uses and believes only an agent that the machine has named. It repeats a call without an answer to the
machine itself.

Each machine keeps its own agent, name, journal, keys and connection. The accepting agent passes each call to the
machine's own agent. The immediate answers return as one bundle, each with its machine's seal. A machine that needs time
answers later by itself, and one that fails does not answer, as without bundles.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ramp.model.acl import EncodedMessage, Message
from ramp.model.contents import CallForProposals, Content, Rejection
from ramp.xmpp.address import sender_of
from ramp.xmpp.bundles import PARTS_MAX

if TYPE_CHECKING:
    from ramp.agents.roles import ResourceAgent

SITE_FIELD: Final = "site"
"""Metadata field of an offer with the agent that accepts bundles for several machines of its site."""

ROUTES_MAX: Final = 20_000
"""Maximum number of machines with a remembered agent; the oldest are forgotten first."""

BUNDLED: Final = (CallForProposals, Rejection)
"""Contents that may pass through a site's agent; none of them creates an obligation."""


class Routes:
    """The agents that accept bundles for machines."""

    def __init__(self) -> None:
        self._site_of: OrderedDict[str, str] = OrderedDict()
        self._called: dict[str, Content] = {}

    def learn(self, machine: str, site: str) -> None:
        """Remember the agent that a machine (authenticated address) has named for its site, if their domains agree."""
        if sender_of(site) != site or site.partition("@")[2] != machine.partition("@")[2]:
            return
        self._site_of[machine] = site
        self._site_of.move_to_end(machine)
        while len(self._site_of) > ROUTES_MAX:
            self.forget(next(iter(self._site_of)))

    def speaks_for(self, site: str, machine: str) -> bool:
        """Return whether a machine has named this agent."""
        return self._site_of.get(machine) == site

    def forget(self, machine: str) -> None:
        """Send directly to a machine until it names an agent again."""
        self._site_of.pop(machine, None)
        self._called.pop(machine, None)

    def unreachable(self, site: str) -> None:
        """Send directly to all machines that have named this agent."""
        for machine in [machine for machine, other in self._site_of.items() if other == site]:
            self.forget(machine)

    def next_together(self, waiting: deque[Message]) -> list[tuple[str, list[Message]]]:
        """Remove messages from the front of a queue in order, and group those that go through one agent.

        Returns:
            Receiver and messages of each stanza: one message to its own receiver, or several to a site's agent.
        """
        first = waiting.popleft()
        if not isinstance(first.content, BUNDLED):
            return [(first.receiver, [first])]
        run = [first]
        while waiting and isinstance(waiting[0].content, BUNDLED):
            run.append(waiting.popleft())
        return list(self._grouped(run))

    def _grouped(self, run: Iterable[Message]) -> Iterable[tuple[str, list[Message]]]:
        groups: dict[tuple[str, bool], list[Message]] = {}  # by receiver, and whether it passes the messages on
        for message in run:
            site = self._site(message)
            groups.setdefault((site or message.receiver, bool(site)), []).append(message)
        for (receiver, passed_on), messages in groups.items():
            if not passed_on or len(messages) == 1:
                yield from ((each.receiver, [each]) for each in messages)
                continue
            for start in range(0, len(messages), PARTS_MAX):
                yield receiver, messages[start : start + PARTS_MAX]

    def _site(self, message: Message) -> str:
        machine = message.receiver
        site = self._site_of.get(machine, "")
        if site and isinstance(message.content, CallForProposals):
            if self._called.get(machine) is message.content:
                self.forget(machine)
                return ""
            self._called[machine] = message.content
        return site


class Site:
    """The machines of one process."""

    def __init__(self) -> None:
        self._members: dict[str, ResourceAgent] = {}

    def join(self, name: str, member: ResourceAgent) -> None:
        """Add the running agent with an address."""
        self._members[name] = member

    def leave(self, name: str, member: ResourceAgent) -> None:
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
