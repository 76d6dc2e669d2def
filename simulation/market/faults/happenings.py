"""What can happen next in a simulated market: the events of its queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ramp.fast_dataclass import fast_dataclass
from ramp.model.acl import EncodedMessage, Message
from ramp.model.instant import Duration
from ramp.protocol import events as ev


@fast_dataclass(frozen=True, slots=True)
class Delivery:
    """A message arrives, as text where the market has a wire."""

    message: Message
    encoded: EncodedMessage | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A party's deadline comes."""

    name: str


@dataclass(frozen=True, slots=True)
class Restart:
    """A party that is down comes up again."""

    name: str


@dataclass(frozen=True, slots=True)
class ClockSet:
    """Set a party's clock; the party may notice a little later, which would have the same result as here."""

    name: str


@dataclass(frozen=True, slots=True)
class Outage:
    """A party is ended from outside, and is down so long."""

    name: str
    lasting: Duration


@dataclass(frozen=True, slots=True)
class Given:
    """A party's owner gives a command."""

    name: str
    command: ev.Command


@dataclass(frozen=True, slots=True)
class GuestStep:
    """Deliver a question to a machine or price strategy, or its answer back."""

    act: Callable[[], None]


Happening = Delivery | Tick | Restart | ClockSet | Outage | Given | GuestStep
