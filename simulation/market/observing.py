"""What watches or disturbs a simulated market from outside: observers, scripts, interceptors of a party's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, Protocol

from ramp.errors import ConfigurationError
from ramp.model.acl import Message
from ramp.model.contents import Registered, Registration
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.ports import Notary
from ramp.model.seal import Seal
from ramp.protocol.effects import Effect, Persist, Report, Send
from ramp.protocol.events import Answer
from ramp.protocol.outcome import RequestOutcome
from simulation.market.actors import Crashed

TELLING: Final = ("key", "code", "reason", "status", "state", "unit", "number", "round_number")
"""Fields whose values are written beside identifiers."""

WORDS_MAX: Final = 8
"""Values written of one message, record or call."""


def unless_rule_failed(outcome: RequestOutcome) -> RequestOutcome:
    """Return an outcome; in a study a failed auction rule must not pass for a failed purchase.

    Raises:
        ConfigurationError: the auction rule failed.
    """
    if outcome.code:
        raise ConfigurationError(f"request {outcome.request_id}: {outcome.reason} ({outcome.code})", key="rule")
    return outcome


class Observer:
    """Base of the observers: each watches what it overrides, in the order in which it happens."""

    def carried_out(self, name: str, effect: Effect, now: Instant) -> None:
        """Note an effect that a party is about to carry out."""

    def sent(self, message: Message, delays: Sequence[Duration], now: Instant) -> None:
        """Note a message taken by the network; each delay is one copy that will arrive."""

    def answered(self, name: str, answer: Answer, now: Instant) -> None:
        """Note a late answer of a resource's machine or price strategy."""

    def crashed(self, name: str, now: Instant) -> None:
        """Note that a party is down."""

    def restarted(self, name: str, now: Instant) -> None:
        """Note that a party is about to start again."""


def is_heartbeat(message: Message) -> bool:
    """Return whether a message only keeps a resource listed."""
    return isinstance(message.content, (Registration, Registered))  # faster than a union, for every message


class Happened(Observer):
    """An observer that keeps lines, with times counted from `start`; heartbeats of resources are left out."""

    def __init__(self, start: Instant) -> None:
        self.lines: list[str] = []
        self._start = start

    def carried_out(self, name: str, effect: Effect, now: Instant) -> None:
        """Write what a party does, messages apart."""
        match effect:
            case Send():
                return
            case Persist(record):
                self._write(f"{name} writes {brief(record)}", now)
            case Report(progress):
                self._write(f"{name} reports {brief(progress)}", now)
            case _:
                self._write(f"{name} calls {brief(effect)}", now)

    def sent(self, message: Message, delays: Sequence[Duration], now: Instant) -> None:
        """Write a message and what becomes of it on its way."""
        if is_heartbeat(message):
            return
        arrives = ", ".join(f"{delay / SECOND:.3f}" for delay in delays)
        fate = f"arrives after {arrives} s" if delays else "lost"
        said = f"{message.performative.value.upper()} {brief(message.content)}"
        self._write(f"{message.sender} -> {message.receiver}: {said} ({fate})", now)

    def answered(self, name: str, answer: Answer, now: Instant) -> None:
        """Write an answer that comes late."""
        self._write(f"{name} gets the late answer {brief(answer)}", now)

    def crashed(self, name: str, now: Instant) -> None:
        """Write a crash."""
        self._write(f"{name} crashes", now)

    def restarted(self, name: str, now: Instant) -> None:
        """Write a restart."""
        self._write(f"{name} restarts", now)

    def _write(self, text: str, now: Instant) -> None:
        self.lines.append(f"{(now - self._start) / SECOND:9.3f}  {text}")


def brief(value: Any) -> str:
    """Return the type of a message's content, record or call, and its subject: identifiers, codes and numbers."""
    words = list(dict.fromkeys(_words(value)))
    shown = [*words[:WORDS_MAX], "..."] if len(words) > WORDS_MAX else words
    return " ".join([type(value).__name__, *shown])


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for each in value:
            yield from _words(each)
    elif is_dataclass(value) and not isinstance(value, type | Seal):
        for field in fields(value):
            found = getattr(value, field.name)
            if not isinstance(found, str | int):
                yield from _words(found)
            elif found != "" and field.name.endswith("_id"):
                yield str(found)
            elif found != "" and field.name in TELLING:
                yield f"{field.name}={found}"


class Script(Protocol):
    """Decides single things that the fault plan would otherwise draw."""

    def route(self, message: Message) -> Sequence[Duration] | None:
        """Return delays of the copies that arrive (none: lost), or None to leave it to the network."""
        ...

    def crash(self, name: str, effect: Effect) -> Crashed | None:
        """Return a crash of the party before this effect, or None."""
        ...


Said = tuple[Message, Duration]
"""A message, and how long its sender keeps it back."""


class Interceptor(Protocol):
    """Takes the messages of one party, and sends in its name whatever it likes under that party's own key."""

    def says(self, message: Message, now: Instant) -> Sequence[Said]:
        """Return the messages sent in place of a signed and sealed one of the party; `now` is the party's clock."""
        ...

    def hears(self, message: Message, now: Instant) -> Sequence[Said]:
        """Return the messages sent after a message was delivered to the party; `now` is the party's clock."""
        ...


NewInterceptor = Callable[[str, Notary, Sequence[str]], Interceptor]
"""Makes the interceptor of a party from its name, its notary and the names of all others."""
