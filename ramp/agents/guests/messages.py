"""What an agent and a guest's process say to each other: data as JSON text, and nothing that could run.

A message is its length in four bytes, the highest first, and then as many bytes of JSON. The agent opens the guest with
an `Opening` and is told `Opened` or `NotOpened`; then every `Asked` is answered by one `Told` of the same number, in
order. What a guest's process says is believed to be nothing but text: it is limited in size, must be exactly of the
types of an answer, and is then checked like the answer of a plug-in that runs in the agent's own process.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final

import cattrs
from cattrs.strategies import configure_tagged_union

from ramp.model.instant import Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.protocol import events as ev
from ramp.protocol.amending.asking import SlotResized
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.pricing import PriceRefusal
from ramp.runtime.guests.answers import Question
from ramp.runtime.record_json import new_converter

MESSAGE_BYTES_MAX: Final = 1_000_000
"""Size of a message: what a document with 256 units asks and is answered stays well below it."""

ENTRIES_MAX: Final = 1_000
"""Entries of a list in an answer; read one by one, more would keep the agent from its other work."""

LENGTH_BYTES: Final = 4
"""Bytes of a message's length."""

_TAG: Final = "type"


@dataclass(frozen=True, slots=True)
class Opening:
    """What a guest's process is to open.

    Attributes:
        group: the entry point's group.
        name: its name.
        value: where it is (`package.module:attribute`).
        settings: for a plug-in, the fields of its `PluginSettings`; None for a price strategy.
    """

    group: str
    name: str
    value: str
    settings: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The guest is there.

    Attributes:
        source: what drives its machine's queue; empty for a price strategy.
        tended: whether it wants to be told whose the sold slots are.
    """

    source: str
    tended: bool = False


class Blame(StrEnum):
    """Why a guest cannot be opened: it may pass, its options are wrong, or it says itself that it will never do."""

    NOBODY = "nobody"
    CONFIGURATION = "configuration"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class NotOpened:
    """The guest cannot be opened.

    Attributes:
        reason: a sentence.
        blame: where the guest says that trying again is no use, for what reason.
    """

    reason: str
    blame: Blame


@dataclass(frozen=True, slots=True)
class Asked:
    """A party's question, and the time."""

    number: int
    now: Instant
    question: Question


@dataclass(frozen=True, slots=True)
class Finding:
    """How one call of the guest has ended; no reason: as it should."""

    call: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to the question of that number, and how the guest's calls went."""

    number: int
    answer: ev.Answer
    findings: tuple[Finding, ...] = field(default=())


FromGuest = Opened | NotOpened | Told
ToGuest = Opening | Asked
_Answered = (
    ev.SlotsQuoted
    | ev.SlotHeld
    | ev.SlotConfirmed
    | ev.SlotLookedUp
    | ev.SlotFreed
    | ev.MachineDescribed
    | ev.SlotsForgotten
    | ev.SlotsTended
    | ev.SlotsPriced
    | SlotResized
)


class NonsenseSaid(Exception):
    """What the other side said is no message; the text says why, without showing much of it."""


def write(message: FromGuest | ToGuest) -> bytes:
    """A message with its length before it.

    Raises:
        NonsenseSaid: if it is too long.
    """
    plain = _converter().unstructure(message, unstructure_as=FromGuest | ToGuest)
    text = json.dumps(plain, separators=(",", ":"), default=_write_moment).encode("ascii")
    return check_size(len(text)).to_bytes(LENGTH_BYTES, "big") + text


def read_opening_or_question(text: bytes) -> ToGuest:
    """Read what an agent says.

    Raises:
        NonsenseSaid: if it is nothing of that.
    """
    message: ToGuest = _read(text, ToGuest, _read_moment)
    return message


def read_answer(text: bytes) -> FromGuest:
    """Read what a guest's process says.

    Raises:
        NonsenseSaid: if it is nothing of that.
    """
    message: FromGuest = _read(text, FromGuest, _limited)
    return message


def check_size(size: int) -> int:
    """The size of a message in bytes, if it is taken.

    Raises:
        NonsenseSaid: if it is not.
    """
    if not 0 < size <= MESSAGE_BYTES_MAX:
        raise NonsenseSaid(f"a message of {size} bytes; at most {MESSAGE_BYTES_MAX} are taken")
    return size


def _read(text: bytes, kind: Any, object_hook: Callable[[dict[str, Any]], Any]) -> Any:
    try:
        return _converter().structure(json.loads(text, object_hook=object_hook), kind)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, cattrs.BaseValidationError) as error:
        raise NonsenseSaid(f"nothing that can be read as an answer ({type(error).__name__})") from error


# -- types -----------------------------------------------------------------------------------------------------------


@cache  # a third of a second, which most agents never need
def _converter() -> cattrs.Converter:
    converter = new_converter()
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    for code in (RefusalCode, Blame):  # texts themselves, for which the hook of texts would do else
        converter.register_structure_hook(code, _member)
    converter.register_structure_hook(float, _number)
    _with_plain(converter, int | PriceRefusal, int)
    _with_plain(converter, bool | None, type(None), bool)
    _with_plain(converter, int | None, type(None), int)
    _with_plain(converter, MachineInDoubt | None, type(None))
    _with_plain(converter, Reservation | MachineInDoubt | None, type(None))
    _with_plain(converter, Reservation | Refusal | None, type(None))
    for union in (Slot | Refusal, Reservation | Refusal | MachineInDoubt, Question, _Answered):
        configure_tagged_union(union, converter, tag_name=_TAG)
    _as(converter, ev.Answer, _Answered)
    for union in (FromGuest, ToGuest, FromGuest | ToGuest):
        configure_tagged_union(union, converter, tag_name=_TAG)
    return converter


def _exactly(kind: type) -> Any:
    """Take a value of a type as it is; cattrs would make a number of "12" and a text of anything."""

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{type(value).__name__} for {kind.__name__}")
        return value

    return structure


def _member(value: Any, kind: type[StrEnum]) -> StrEnum:
    return kind(value)


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{type(value).__name__} for a number")
    return float(value)


def _as(converter: cattrs.Converter, union: Any, part: Any) -> None:
    """Treat a union as the part of it that is ever said."""
    converter.register_unstructure_hook(union, lambda value: converter.unstructure(value, unstructure_as=part))
    converter.register_structure_hook(union, lambda value, _: converter.structure(value, part))


def _with_plain(converter: cattrs.Converter, union: Any, *simple: type) -> None:
    """A union in which values of simple types stand for themselves, and objects name their class."""
    classes = {each.__name__: each for each in union.__args__ if each not in simple}

    def unstructure(value: Any) -> Any:
        if type(value) in simple:
            return value
        return {_TAG: type(value).__name__, **converter.unstructure(value)}

    def structure(value: Any, _: Any) -> Any:
        if type(value) in simple:
            return value
        fields = dict(value)
        return converter.structure(fields, classes[fields.pop(_TAG)])

    converter.register_unstructure_hook(union, unstructure)
    converter.register_structure_hook(union, structure)


# -- what a plug-in's options may hold beside JSON's types: the dates and times of TOML -------------------------------

_MOMENT: Final = "toml"


def _write_moment(value: object) -> Mapping[str, str]:
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return {_MOMENT: value.isoformat()}
    raise TypeError(f"a {type(value).__name__} cannot be written")


def _limited(value: dict[str, Any]) -> dict[str, Any]:
    if any(isinstance(each, list) and len(each) > ENTRIES_MAX for each in value.values()):
        raise ValueError(f"more than {ENTRIES_MAX} entries")
    return value


def _read_moment(value: dict[str, Any]) -> Any:
    if value.keys() != {_MOMENT} or not isinstance(value[_MOMENT], str):
        return value
    return tomllib.loads(f"x = {value[_MOMENT]}")["x"]
