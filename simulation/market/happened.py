"""What happened in a simulated market, a line each: messages, records, calls to machine and ledger, crashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from ramp.model.acl import Message
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.seal import Seal
from ramp.protocol.effects import Effect, Persist, Report, Send
from ramp.protocol.events import Answer
from simulation.market.observing import is_heartbeat

TELLING: Final = ("key", "code", "reason", "status", "state", "unit", "number", "round_number")
"""Fields whose values are written beside identifiers."""

WORDS_MAX: Final = 8
"""Values written of one message, record or call."""


class Happened:
    """An observer that keeps lines; heartbeats of resources are left out.

    Args:
        start: the instant that is written as 0.
    """

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
    """The type of a message's content, a record or a call, and what it is about: identifiers, codes and numbers."""
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
