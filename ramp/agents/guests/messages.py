"""Messages between an agent and a guest's process: data as lines of JSON, without code.

The agent sends an `Opening` and
receives `Opened` or `NotOpened`. Each later `Asked` gets one `Told` with the same number, in order. The agent does not
trust a guest's messages: it limits their size, requires the exact types of an answer, and then checks them like the
answers of a plug-in in its own process.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, Union

import cattrs

from ramp.model.instant import Instant
from ramp.plugins.interface import PluginSettings
from ramp.protocol import events as ev
from ramp.runtime.guests.questions import ROWS, Question
from ramp.runtime.model_json import strict_converter

MESSAGE_BYTES_MAX: Final = 1_000_000
"""Maximum size of a line in bytes; documents with 256 units stay well below."""

ENTRIES_MAX: Final = 1_000
"""Maximum number of entries in a list of an answer; reading more would block the agent."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The guest that a process must open.

    Attributes:
        group: group of its entry point.
        name: name of its entry point.
        value: value of its entry point (`package.module:attribute`).
        settings: settings of a plug-in; None for a price strategy.
    """

    group: str
    name: str
    value: str
    settings: PluginSettings | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The guest is open.

    Attributes:
        source: source of its machine's queue; empty for a price strategy.
        tended: whether the plug-in needs the buyers of sold slots.
    """

    source: str
    tended: bool = False


@dataclass(frozen=True, slots=True)
class NotOpened:
    """The guest cannot be opened.

    Attributes:
        reason: the problem as a text.
        blame: invalid options, a permanent problem of the guest, or a temporary one, worth another attempt.
    """

    reason: str
    blame: Literal["configuration", "guest", "nobody"]


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
    """Write a message as a line; `NonsenseSaid` if it is too long."""
    plain = _converter().unstructure(message, unstructure_as=FromGuest | ToGuest)
    line = json.dumps(plain, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > MESSAGE_BYTES_MAX:
        raise NonsenseSaid(f"a message must have at most {MESSAGE_BYTES_MAX} bytes, got {len(line)}")
    return line


def read_opening_or_question(text: bytes) -> ToGuest:
    """Decode a message of an agent; `NonsenseSaid` if it is invalid."""
    message: ToGuest = _read(text, ToGuest)
    return message


def read_answer(text: bytes) -> FromGuest:
    """Decode a message of a guest's process; `NonsenseSaid` if it is invalid."""
    message: FromGuest = _read(text, FromGuest, _limited)
    return message


def _read(text: bytes, kind: Any, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    try:
        return _converter().structure(json.loads(text, object_hook=object_hook), kind)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, cattrs.BaseValidationError) as error:
        raise NonsenseSaid(f"invalid message ({type(error).__name__})") from error


@cache  # takes a third of a second, and most agents need it never
def _converter() -> cattrs.Converter:
    converter = strict_converter()
    # of all answers only those that a guest gives
    converter.register_structure_hook_func(
        lambda kind: kind == ev.Answer, lambda value, _: converter.structure(value, _ANSWER)
    )
    return converter


def _limited(value: dict[str, Any]) -> dict[str, Any]:
    if any(isinstance(each, list) and len(each) > ENTRIES_MAX for each in value.values()):
        raise ValueError(f"more than {ENTRIES_MAX} entries")
    return value
