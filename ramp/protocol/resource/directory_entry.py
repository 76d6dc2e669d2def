"""A resource's entry in the directory: made, renewed by heartbeats, and taken back."""

from __future__ import annotations

from ramp.model.acl import Message, Performative
from ramp.model.contents import Deregistration, Registration
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role
from ramp.model.services import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Send
from ramp.protocol.timing import Timing


class DirectoryEntry:
    """One resource's entry.

    Numbers rise from one word to the directory to the next, also over a restart, for they follow the clock; so a copy
    of an old word changes nothing.

    Args:
        name: the resource.
        directory: name of the directory agent.
        timing: says how long an entry lasts and when it is renewed.
        draining: whether it begins so.

    Attributes:
        deadline: when it is renewed next.
        draining: whether the resource says that it sells nothing new, by an entry under `DRAINING_SERVICE` as well.
            It stays among those who sell: whoever calls it learns the reason.
    """

    def __init__(self, name: str, directory: str, timing: Timing, *, draining: bool = False) -> None:
        self.deadline: Instant = 0
        self.draining = draining
        self._name = name
        self._directory = directory
        self._timing = timing
        self._number = 0

    def renew(self, now: Instant) -> list[Effect]:
        """Make the entry, or let it last longer."""
        self.deadline = now + self._timing.heartbeat
        services = (RESOURCE_SERVICE, DRAINING_SERVICE) if self.draining else (RESOURCE_SERVICE,)
        lease = self._timing.lease
        return [
            self._word(Performative.SUBSCRIBE, Registration(service, lease, self._next_number(now)))
            for service in services
        ]

    def leave(self, now: Instant) -> list[Effect]:
        """Take the entry back, so that no later auction calls this resource."""
        resumed = self.drain(False, now)
        return [*resumed, self._word(Performative.CANCEL, Deregistration(RESOURCE_SERVICE, self._next_number(now)))]

    def drain(self, draining: bool, now: Instant) -> list[Effect]:
        """Say that the resource sells nothing new from now on, or that it sells again; nothing where that is known."""
        if draining == self.draining:
            return []
        self.draining = draining
        if draining:
            return self.renew(now)
        return [self._word(Performative.CANCEL, Deregistration(DRAINING_SERVICE, self._next_number(now)))]

    def entered(self, message: Message, number: int) -> None:
        """The directory's answer: its number is the last one that counts.

        Raises:
            RemoteProtocolError: somebody else says so.
        """
        said_by(message, self._directory, Role.DIRECTORY)
        self._number = max(self._number, number)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        self.deadline += by

    def _next_number(self, now: Instant) -> int:
        self._number = max(self._number + 1, now)
        return self._number

    def _word(self, performative: Performative, content: Registration | Deregistration) -> Send:
        return Send(Message(performative, self._name, self._directory, self._name, content))
