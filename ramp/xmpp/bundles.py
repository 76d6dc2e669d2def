"""Several messages between one agent and the machines of a site in one stanza: pure text in and out.

A stanza costs servers and agents nearly as much with little in it as with much; so what many machines of one site are
told, or say, at the same time goes together. What is equal in the messages is written once. The body is JSON; every
message in it keeps its own document, slots and seal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ramp.errors import SAME_VERSION, DocumentError, wrong_version
from ramp.xmpp.address import sender_of
from ramp.xmpp.wire import INFLATED_MAX_BYTES

BUNDLE_KEY: Final = "bundle"
"""Metadata field that says that the body is a bundle; its value is the version of the form."""

BUNDLE_VERSION: Final = "1"

PARTS_MAX: Final = 200
"""Messages in one bundle at most."""

UNPACKED_MAX: Final = INFLATED_MAX_BYTES
"""Characters of all documents of a bundle together, a repeated one counted each time."""

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a bundle.

    Attributes:
        machine: address of the resource whom it is for, or who says it.
        metadata: FIPA parameters by name.
        thread: conversation id.
        body: the document.
    """

    machine: str
    metadata: dict[str, str]
    thread: str
    body: str


def pack(parts: Sequence[Part]) -> tuple[str, dict[str, str]]:
    """Write messages as one; returns body and metadata.

    Args:
        parts: at least one, at most `PARTS_MAX`.
    """
    bodies: list[str] = []
    slots: list[dict[str, str]] = []
    lines = [
        [part.machine, part.thread, _number_of(part.metadata, slots), _number_of(part.body, bodies)] for part in parts
    ]
    body = json.dumps({"bodies": bodies, "slots": slots, "parts": lines}, separators=(",", ":"), ensure_ascii=False)
    # behaviours are found by the performative; those of one bundle are served by one behaviour
    return body, {"performative": parts[0].metadata["performative"], BUNDLE_KEY: BUNDLE_VERSION}


def _number_of(value: _Value, known: list[_Value]) -> int:
    """The place of a value among those that stand there already, the last ones first; else it is added."""
    for index in range(len(known) - 1, -1, -1):
        if known[index] is value or known[index] == value:
            return index
    known.append(value)
    return len(known) - 1


def unpack(body: str, version: str) -> tuple[Part, ...]:
    """Read what `pack` has written.

    Args:
        body: of the bundle.
        version: the value of the field `BUNDLE_KEY`.

    Raises:
        DocumentError: it is no bundle, or has too much in it.
    """
    if version != BUNDLE_VERSION:
        raise DocumentError(wrong_version("the bundle", ascii(version[:20]), BUNDLE_VERSION, SAME_VERSION))
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"the bundle is not JSON: {str(error)[:100]}") from None
    if not isinstance(data, dict) or data.keys() != {"bodies", "slots", "parts"}:
        raise DocumentError("a bundle is an object of bodies, slots and parts")
    bodies, slots, lines = data["bodies"], data["slots"], data["parts"]
    if not all(isinstance(each, list) for each in (bodies, slots, lines)):
        raise DocumentError("bodies, slots and parts of a bundle are lists")
    if not 0 < len(lines) <= PARTS_MAX:
        raise DocumentError(f"a bundle has 1 to {PARTS_MAX} messages, got {len(lines)}")
    parts = tuple(_part(line, bodies, slots) for line in lines)
    if (length := sum(len(part.body) for part in parts)) > UNPACKED_MAX:
        raise DocumentError(f"the documents of a bundle have at most {UNPACKED_MAX} characters together, got {length}")
    return parts


def _part(line: Any, bodies: list[Any], slots: list[Any]) -> Part:
    if not isinstance(line, list) or [type(value) for value in line] != [str, str, int, int]:
        raise DocumentError("a part of a bundle is a machine, a thread, and the numbers of its slots and its body")
    machine, thread, slot_number, body_number = line
    if sender_of(machine) != machine:
        raise DocumentError(f"{machine[:100]!a} in a bundle is not an address user@domain in prepared form")
    if not (0 <= slot_number < len(slots) and 0 <= body_number < len(bodies)):
        raise DocumentError(
            f"a part of a bundle points to slots {slot_number} and body {body_number}, which do not exist"
        )
    metadata, body = slots[slot_number], bodies[body_number]
    if not isinstance(body, str) or not body:
        raise DocumentError("a body of a bundle must be a text, and not empty")
    if not isinstance(metadata, dict) or not all(isinstance(value, str) and value for value in metadata.values()):
        raise DocumentError("slots of a bundle must be texts by name, and not empty")
    for text in (thread, body, *metadata, *metadata.values()):
        if found := _FORBIDDEN.search(text):
            raise DocumentError(f"character U+{ord(found.group()):04X} in a bundle is not allowed in XML 1.0")
    return Part(machine, dict(metadata), thread, body)
