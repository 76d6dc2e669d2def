"""The buyer's side of bundles: the agents that accept messages for several machines of a site.

A machine names such an agent in a field of the offers that it sends itself. The buyer uses and believes only an agent
that the machine has named. It repeats a call without an answer to the machine itself.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final

from ramp.model.acl import Message
from ramp.model.contents import CallForProposals, Content, Rejection
from ramp.xmpp.address import sender_of
from ramp.xmpp.bundles import PARTS_MAX

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
        for machine in [machine for machine, other in self._site_of.items() if other == site]:
            self.forget(machine)

    def next_together(self, waiting: deque[Message]) -> list[tuple[str, list[Message]]]:
        """Remove messages from the front of a queue in order, and group those that go through one agent.

        Args:
            waiting: messages to send; not empty.

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
