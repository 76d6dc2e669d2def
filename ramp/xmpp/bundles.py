"""Bundles: several messages between an agent and the machines of one site in one stanza. Pure text in and out.

A short stanza costs servers and agents nearly as much as a long one. So messages to or from many machines of one site
travel together. Equal parts of the messages are written once. The body is JSON; each message in it keeps its own
document, slots and seal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from ramp.errors import SAME_VERSION, DocumentError, wrong_version
from ramp.model.acl import EncodedMessage
from ramp.rfql.xml.markup import FORBIDDEN
from ramp.xmpp.address import sender_of
from ramp.xmpp.wire import INFLATED_MAX_BYTES

BUNDLE_KEY: Final = "bundle"
"""Metadata field that marks the body as a bundle; its value is the version of the format."""

BUNDLE_VERSION: Final = "1"

PARTS_MAX: Final = 200
"""Maximum number of messages in one bundle."""

UNPACKED_MAX: Final = INFLATED_MAX_BYTES
"""Maximum total length of the documents of a bundle in characters; a repeated document counts each time."""

_Value = TypeVar("_Value")


def pack(to: str, messages: Sequence[EncodedMessage]) -> EncodedMessage:
    """Write messages as one bundle.

    Args:
        to: receiver of the bundle.
        messages: 1 to `PARTS_MAX`, each with the address of its machine as peer.
    """
    bodies: list[str] = []
    slots: list[dict[str, str]] = []
    lines = [
        [each.peer, each.thread, _number_of(each.metadata, slots), _number_of(each.body, bodies)] for each in messages
    ]
    body = json.dumps({"bodies": bodies, "slots": slots, "parts": lines}, separators=(",", ":"), ensure_ascii=False)
    first = messages[0]
    # the performative selects the behaviour; one behaviour serves all messages of a bundle
    metadata = {"performative": first.metadata["performative"], BUNDLE_KEY: BUNDLE_VERSION}
    return EncodedMessage(to, body, metadata, first.thread)


def _number_of(value: _Value, known: list[_Value]) -> int:
    """Return the index of a value in a list, searched from the end; append the value if it is missing."""
    for index in range(len(known) - 1, -1, -1):
        if known[index] is value or known[index] == value:
            return index
    known.append(value)
    return len(known) - 1


def unpack(bundle: EncodedMessage) -> tuple[EncodedMessage, ...]:
    """Read the messages of a bundle that `pack` has written; the peer of each is its machine.

    Raises:
        DocumentError: the message is not a bundle, or exceeds a limit.
    """
    version = bundle.metadata[BUNDLE_KEY]
    if version != BUNDLE_VERSION:
        raise DocumentError(wrong_version("the bundle", ascii(version[:20]), BUNDLE_VERSION, SAME_VERSION))
    try:
        data = json.loads(bundle.body)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"the bundle is not JSON: {str(error)[:100]}") from None
    if not isinstance(data, dict) or data.keys() != {"bodies", "slots", "parts"}:
        raise DocumentError("invalid bundle: expected a JSON object with bodies, slots and parts")
    bodies, slots, lines = data["bodies"], data["slots"], data["parts"]
    if not all(isinstance(each, list) for each in (bodies, slots, lines)):
        raise DocumentError("invalid bundle: bodies, slots and parts must be lists")
    if not 0 < len(lines) <= PARTS_MAX:
        raise DocumentError(f"a bundle must have 1 to {PARTS_MAX} messages, got {len(lines)}")
    messages = tuple(_message(line, bodies, slots) for line in lines)
    if (length := sum(len(each.body) for each in messages)) > UNPACKED_MAX:
        raise DocumentError(f"the documents of a bundle are too long: got {length} characters, maximum {UNPACKED_MAX}")
    return messages


def _message(line: Any, bodies: list[Any], slots: list[Any]) -> EncodedMessage:
    if not isinstance(line, list) or [type(value) for value in line] != [str, str, int, int]:
        raise DocumentError("invalid part of a bundle: expected a machine, a thread, and numbers of slots and body")
    machine, thread, slot_number, body_number = line
    if sender_of(machine) != machine:
        raise DocumentError(f"invalid address in a bundle: got {machine[:100]!a}, expected canonical user@domain")
    if not (0 <= slot_number < len(slots) and 0 <= body_number < len(bodies)):
        raise DocumentError(f"invalid part of a bundle: slots {slot_number} or body {body_number} do not exist")
    metadata, body = slots[slot_number], bodies[body_number]
    if not isinstance(body, str) or not body:
        raise DocumentError("invalid body in a bundle: expected a text that is not empty")
    if not isinstance(metadata, dict) or not all(isinstance(value, str) and value for value in metadata.values()):
        raise DocumentError("invalid slots in a bundle: expected texts by name, none of them empty")
    for text in (thread, body, *metadata, *metadata.values()):
        if found := FORBIDDEN.search(text):
            raise DocumentError(f"character U+{ord(found.group()):04X} in a bundle is not allowed in XML 1.0")
    return EncodedMessage(machine, body, dict(metadata), thread)
