"""What acts on a simulated market from outside: observers, scripts, and interceptors of a party's messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ramp.model.acl import Message
from ramp.model.contents import Registered, Registration
from ramp.model.instant import Duration, Instant
from ramp.model.ports import Notary
from ramp.protocol.effects import Effect
from ramp.protocol.events import Answer


class Observer(Protocol):
    """Is told everything in the order in which it happens."""

    def carried_out(self, name: str, effect: Effect, now: Instant) -> None:
        """A party is about to carry out an effect."""
        ...

    def sent(self, message: Message, delays: Sequence[Duration], now: Instant) -> None:
        """The network has taken a message; each delay is one copy that will arrive."""
        ...

    def answered(self, name: str, answer: Answer, now: Instant) -> None:
        """A resource's machine or price strategy answers later than it was asked."""
        ...

    def crashed(self, name: str, now: Instant) -> None:
        """A party is down."""
        ...

    def restarted(self, name: str, now: Instant) -> None:
        """A party is about to come up again."""
        ...


def is_heartbeat(message: Message) -> bool:
    """Whether a message only keeps a resource listed."""
    return isinstance(message.content, Registration | Registered)


@dataclass(frozen=True, slots=True)
class ScriptedCrash:
    """A crash that a script wants; `down_for` None means until the script restarts the party."""

    down_for: Duration | None = None


class Script(Protocol):
    """Decides single things that the fault plan would otherwise draw."""

    def route(self, message: Message) -> Sequence[Duration] | None:
        """Delays of the copies that arrive (none: lost), or None to leave it to the network."""
        ...

    def crash(self, name: str, effect: Effect) -> ScriptedCrash | None:
        """Whether the party crashes before this effect."""
        ...


Said = tuple[Message, Duration]
"""A message, and how long its sender keeps it back."""


class Interceptor(Protocol):
    """Takes the messages of one party, and sends in its name whatever it likes under that party's own key."""

    def says(self, message: Message, now: Instant) -> Sequence[Said]:
        """What is sent instead of a signed and sealed message of the party; `now` is the party's clock."""
        ...

    def hears(self, message: Message, now: Instant) -> Sequence[Said]:
        """What is sent because a message has been delivered to the party; `now` is the party's clock."""
        ...


NewInterceptor = Callable[[str, Notary, Sequence[str]], Interceptor]
"""Makes the interceptor of a party from its name, its notary and the names of all others."""
