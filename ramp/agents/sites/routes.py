"""The buyer's side: which machines are spoken to together, through one agent of their site.

A machine's own agent says who else takes messages for it, in a field of the offers that it sends itself; so nobody is
spoken to, or believed, for a machine that has not named him. What gets no answer is sent again to the machine itself.
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
"""Metadata field of an offer: through whom its machine can be spoken to as well, together with others."""

ROUTES_MAX: Final = 20_000
"""Machines whose way is remembered; those heard of longest ago go first."""

BUNDLED: Final = (CallForProposals, Rejection)
"""What may go through a site's agent: nothing that somebody relies on."""


class Routes:
    """Through whom machines are spoken to."""

    def __init__(self) -> None:
        self._site_of: OrderedDict[str, str] = OrderedDict()
        self._called: dict[str, Content] = {}

    def learn(self, machine: str, site: str) -> None:
        """A machine's own agent has named the agent of its site, which must be of its own domain.

        Args:
            machine: address of who has said so, as the transport authenticated it.
            site: as it was named.
        """
        if sender_of(site) != site or site.partition("@")[2] != machine.partition("@")[2]:
            return
        self._site_of[machine] = site
        self._site_of.move_to_end(machine)
        while len(self._site_of) > ROUTES_MAX:
            self.forget(next(iter(self._site_of)))

    def speaks_for(self, site: str, machine: str) -> bool:
        """Whether a machine has named somebody."""
        return self._site_of.get(machine) == site

    def forget(self, machine: str) -> None:
        """Speak to a machine itself from now on, until it names a site's agent again."""
        self._site_of.pop(machine, None)
        self._called.pop(machine, None)

    def unreachable(self, site: str) -> None:
        """A site's agent is not there."""
        for machine in [machine for machine, other in self._site_of.items() if other == site]:
            self.forget(machine)

    def next_together(self, waiting: deque[Message]) -> list[tuple[str, list[Message]]]:
        """Take messages from the front of a queue, in its order, and group those that go through one agent.

        Args:
            waiting: messages to be sent; not empty. What is taken is no longer there.

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
        groups: dict[tuple[str, bool], list[Message]] = {}  # by receiver, and whether he passes it on
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
        """The agent through whom a message goes, or an empty string; a call that is sent again goes straight."""
        machine = message.receiver
        site = self._site_of.get(machine, "")
        if site and isinstance(message.content, CallForProposals):
            if self._called.get(machine) is message.content:
                self.forget(machine)
                return ""
            self._called[machine] = message.content
        return site
