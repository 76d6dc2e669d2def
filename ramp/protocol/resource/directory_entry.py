"""A resource's registration in every directory of the market, renewed by heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ramp.model.acl import Message, Performative
from ramp.model.contents import Deregistration, Registration
from ramp.model.contents.directory import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.model.instant import Instant
from ramp.model.slot import StaticTerms
from ramp.protocol.conversations import Alarm
from ramp.protocol.effects import Effect, Send
from ramp.protocol.questions import Directories
from ramp.protocol.timing import Timing


class DirectoryEntry(Alarm):
    """One resource's registration.

    Messages to a directory have rising numbers that follow the clock, also over a restart, so a copy of an old message
    changes nothing. Each directory has its own numbers: one that claims an absurdly high number affects only itself.

    Args:
        timing: sets lease and heartbeat.
        terms: of the machine, which save calls that it could never serve.

    Attributes:
        deadline: next renewal.
        draining: whether the resource makes no new sales, stated by a second entry under `DRAINING_SERVICE`. It stays
            listed as a seller, so that a caller learns the reason.
    """

    def __init__(
        self,
        name: str,
        directories: Sequence[str],
        timing: Timing,
        *,
        terms: StaticTerms,
        draining: bool,
    ) -> None:
        super().__init__()
        self.deadline = 0
        self.draining = draining
        self._name = name
        self._terms = (terms,)
        self._directories = Directories(directories)
        self._timing = timing
        self._numbers = dict.fromkeys(directories, 0)

    def renew(self, now: Instant) -> list[Effect]:
        self.deadline = now + self._timing.heartbeat
        lease = self._timing.lease
        selling = partial(Registration, RESOURCE_SERVICE, lease, terms=self._terms)
        effects = self._say(Performative.SUBSCRIBE, selling, now)
        if self.draining:
            effects += self._say(Performative.SUBSCRIBE, partial(Registration, DRAINING_SERVICE, lease), now)
        return effects

    def leave(self, now: Instant) -> list[Effect]:
        """Deregister, so that no later auction calls this resource."""
        resumed = self.drain(False, now)
        return [*resumed, *self._say(Performative.CANCEL, partial(Deregistration, RESOURCE_SERVICE), now)]

    def drain(self, draining: bool, now: Instant) -> list[Effect]:
        """State that the resource stops or resumes new sales; without a change, say nothing."""
        if draining == self.draining:
            return []
        self.draining = draining
        if draining:
            return self.renew(now)
        return self._say(Performative.CANCEL, partial(Deregistration, DRAINING_SERVICE), now)

    def entered(self, message: Message, number: int) -> None:
        """Record the last number that a directory accepted; `RemoteProtocolError` if no directory sent it."""
        self._directories.said(message)
        self._numbers[message.sender] = max(self._numbers[message.sender], number)

    def _say(
        self, performative: Performative, word: Callable[[int], Registration | Deregistration], now: Instant
    ) -> list[Effect]:
        """Send a numbered message to every directory."""
        effects: list[Effect] = []
        for directory, last in self._numbers.items():
            self._numbers[directory] = number = max(last + 1, now)
            effects.append(Send(Message(performative, self._name, directory, self._name, word(number))))
        return effects
