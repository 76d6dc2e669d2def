"""A resource's entry in every directory of the market: made, renewed by heartbeats, and taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ramp.model.acl import Message, Performative
from ramp.model.contents import Deregistration, Registration
from ramp.model.instant import Duration, Instant
from ramp.model.services import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.directories import Directories
from ramp.protocol.effects import Effect, Send
from ramp.protocol.timing import Timing


class DirectoryEntry:
    """One resource's entry.

    Numbers rise from one word to the directory to the next, also over a restart, for they follow the clock; so a copy
    of an old word changes nothing. Each directory has numbers of its own: one that claims to know a number beyond all
    measure keeps the resource out of no other.

    Args:
        name: the resource.
        directories: the directories of the market.
        timing: says how long an entry lasts and when it is renewed.
        terms: of the machine, by which nobody has to call it for what it could never serve; None states nothing.
        draining: whether it begins so.

    Attributes:
        deadline: when it is renewed next.
        draining: whether the resource says that it sells nothing new, by an entry under `DRAINING_SERVICE` as well.
            It stays among those who sell: whoever calls it learns the reason.
    """

    def __init__(
        self,
        name: str,
        directories: Sequence[str],
        timing: Timing,
        *,
        terms: StaticTerms | None = None,
        draining: bool = False,
    ) -> None:
        self.deadline: Instant = 0
        self.draining = draining
        self._name = name
        self._terms = () if terms is None else (terms,)
        self._directories = Directories(directories)
        self._timing = timing
        self._numbers = dict.fromkeys(directories, 0)

    def renew(self, now: Instant) -> list[Effect]:
        """Make the entry, or let it last longer."""
        self.deadline = now + self._timing.heartbeat
        lease = self._timing.lease
        selling = partial(Registration, RESOURCE_SERVICE, lease, terms=self._terms)
        effects = self._say(Performative.SUBSCRIBE, selling, now)
        if self.draining:
            effects += self._say(Performative.SUBSCRIBE, partial(Registration, DRAINING_SERVICE, lease), now)
        return effects

    def leave(self, now: Instant) -> list[Effect]:
        """Take the entry back, so that no later auction calls this resource."""
        resumed = self.drain(False, now)
        return [*resumed, *self._say(Performative.CANCEL, partial(Deregistration, RESOURCE_SERVICE), now)]

    def drain(self, draining: bool, now: Instant) -> list[Effect]:
        """Say that the resource sells nothing new from now on, or that it sells again; nothing where that is known."""
        if draining == self.draining:
            return []
        self.draining = draining
        if draining:
            return self.renew(now)
        return self._say(Performative.CANCEL, partial(Deregistration, DRAINING_SERVICE), now)

    def entered(self, message: Message, number: int) -> None:
        """A directory's answer: its number is the last one that counts there.

        Raises:
            RemoteProtocolError: somebody else says so.
        """
        self._directories.said(message)
        self._numbers[message.sender] = max(self._numbers[message.sender], number)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        self.deadline += by

    def _say(
        self, performative: Performative, word: Callable[[int], Registration | Deregistration], now: Instant
    ) -> list[Effect]:
        """Say a word, once it is numbered, to every directory."""
        effects: list[Effect] = []
        for directory, last in self._numbers.items():
            self._numbers[directory] = number = max(last + 1, now)
            effects.append(Send(Message(performative, self._name, directory, self._name, word(number))))
        return effects
