"""Messages between an agent and a guest's process: data as JSON text, without code.

A message is its length in four bytes, big-endian, followed by that many bytes of JSON. The agent sends an `Opening` and
receives `Opened` or `NotOpened`. Each later `Asked` gets one `Told` with the same number, in order. The agent does not
trust a guest's messages: it limits their size, requires the exact types of an answer, and then checks them like the
answers of a plug-in in its own process.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final, Union

import cattrs
from cattrs.strategies import configure_tagged_union

from ramp.model.instant import Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.protocol import events as ev
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.pricing import PriceRefusal
from ramp.runtime.guests.questions import ROWS, Question
from ramp.runtime.record_json import new_converter

MESSAGE_BYTES_MAX: Final = 1_000_000
"""Maximum size of a message in bytes; documents with 256 units stay well below."""

ENTRIES_MAX: Final = 1_000
"""Maximum number of entries in a list of an answer; reading more would block the agent."""

LENGTH_BYTES: Final = 4
"""Size of the length field in bytes."""

_TAG: Final = "type"


@dataclass(frozen=True, slots=True)
class Opening:
    """The guest that a process must open.

    Attributes:
        group: group of its entry point.
        name: name of its entry point.
        value: value of its entry point (`package.module:attribute`).
        settings: fields of the `PluginSettings` of a plug-in; None for a price strategy.
    """

    group: str
    name: str
    value: str
    settings: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The guest is open.

    Attributes:
        source: source of its machine's queue; empty for a price strategy.
        tended: whether the plug-in needs the buyers of sold slots.
    """

    source: str
    tended: bool = False


class Blame(StrEnum):
    """Why a guest cannot be opened: a temporary problem, invalid options, or a permanent problem of the guest."""

    NOBODY = "nobody"
    CONFIGURATION = "configuration"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class NotOpened:
    """The guest cannot be opened.

    Attributes:
        reason: the problem as a text.
        blame: its cause; only a temporary problem is worth another attempt.
    """

    reason: str
    blame: Blame


@dataclass(frozen=True, slots=True)
class Asked:
    """A party's question with its number and the time."""

    number: int
    now: Instant
    question: Question


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one call of the guest; the reason is empty on success."""

    call: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to the question with this number, and the results of the guest's calls."""

    number: int
    answer: ev.Answer
    findings: tuple[Finding, ...] = field(default=())


FromGuest = Opened | NotOpened | Told
ToGuest = Opening | Asked
_ANSWER: Final[Any] = Union[tuple(row.answer for row in ROWS)]  # noqa: UP007 -- of the table's types


class NonsenseSaid(Exception):
    """The other side sent no valid message; the text gives the reason."""


def write(message: FromGuest | ToGuest) -> bytes:
    """Encode a message with its length in front; `NonsenseSaid` if it is too long."""
    plain = _converter().unstructure(message, unstructure_as=FromGuest | ToGuest)
    text = json.dumps(plain, separators=(",", ":"), default=_write_moment).encode("ascii")
    return check_size(len(text)).to_bytes(LENGTH_BYTES, "big") + text


def read_opening_or_question(text: bytes) -> ToGuest:
    """Decode a message of an agent; `NonsenseSaid` if it is invalid."""
    message: ToGuest = _read(text, ToGuest, _read_moment)
    return message


def read_answer(text: bytes) -> FromGuest:
    """Decode a message of a guest's process; `NonsenseSaid` if it is invalid."""
    message: FromGuest = _read(text, FromGuest, _limited)
    return message


def check_size(size: int) -> int:
    """Return an allowed size of a message in bytes; `NonsenseSaid` for any other."""
    if not 0 < size <= MESSAGE_BYTES_MAX:
        raise NonsenseSaid(f"a message must have 1 to {MESSAGE_BYTES_MAX} bytes, got {size}")
    return size


def _read(text: bytes, kind: Any, object_hook: Callable[[dict[str, Any]], Any]) -> Any:
    try:
        return _converter().structure(json.loads(text, object_hook=object_hook), kind)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, cattrs.BaseValidationError) as error:
        raise NonsenseSaid(f"invalid message ({type(error).__name__})") from error


# -- types -----------------------------------------------------------------------------------------------------------


@cache  # takes a third of a second, and most agents need it never
def _converter() -> cattrs.Converter:
    converter = new_converter()
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    for code in (RefusalCode, Blame):  # they are texts, so the hook of texts would apply
        converter.register_structure_hook(code, _member)
    converter.register_structure_hook(float, _number)
    _with_plain(converter, int | PriceRefusal, int)
    _with_plain(converter, bool | None, type(None), bool)
    _with_plain(converter, int | None, type(None), int)
    _with_plain(converter, MachineInDoubt | None, type(None))
    _with_plain(converter, Reservation | MachineInDoubt | None, type(None))
    _with_plain(converter, Reservation | Refusal | None, type(None))
    for union in (Slot | Refusal, Reservation | Refusal | MachineInDoubt, Question, _ANSWER):
        configure_tagged_union(union, converter, tag_name=_TAG)
    _as(converter, ev.Answer, _ANSWER)
    for union in (FromGuest, ToGuest, FromGuest | ToGuest):
        configure_tagged_union(union, converter, tag_name=_TAG)
    return converter


def _exactly(kind: type) -> Any:
    """Accept only values of exactly this type; cattrs would convert "12" to a number and anything to a text."""

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"got {type(value).__name__}, expected {kind.__name__}")
        return value

    return structure


def _member(value: Any, kind: type[StrEnum]) -> StrEnum:
    return kind(value)


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"got {type(value).__name__}, expected a number")
    return float(value)


def _as(converter: cattrs.Converter, union: Any, part: Any) -> None:
    """Treat a union as the part of it that messages use."""
    converter.register_unstructure_hook(union, lambda value: converter.unstructure(value, unstructure_as=part))
    converter.register_structure_hook(union, lambda value, _: converter.structure(value, part))


def _with_plain(converter: cattrs.Converter, union: Any, *simple: type) -> None:
    """Encode values of simple types in a union as they are, and objects with the name of their class."""
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


# -- dates and times of TOML in a plug-in's options ------------------------------------------------------------------

_MOMENT: Final = "toml"


def _write_moment(value: object) -> Mapping[str, str]:
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return {_MOMENT: value.isoformat()}
    raise TypeError(f"cannot encode a {type(value).__name__}")


def _limited(value: dict[str, Any]) -> dict[str, Any]:
    if any(isinstance(each, list) and len(each) > ENTRIES_MAX for each in value.values()):
        raise ValueError(f"more than {ENTRIES_MAX} entries")
    return value


def _read_moment(value: dict[str, Any]) -> Any:
    if value.keys() != {_MOMENT} or not isinstance(value[_MOMENT], str):
        return value
    return tomllib.loads(f"x = {value[_MOMENT]}")["x"]
