"""The message slots (FIPA SC00061) as text: performative and version, and their consistency."""

from __future__ import annotations

from ramp.errors import SAME_VERSION, DocumentError, wrong_version
from ramp.model import contents
from ramp.model.acl import CONTENT_OF, WIRE_VERSION, Message, Performative
from ramp.rfql.xml import schema
from ramp.rfql.xml.markup import shown


def check_sendable(message: Message) -> None:
    """Check that a message's content goes with its performative.

    Raises:
        DocumentError: if not, or if the content is never sent (`Unverified`).
    """
    kind = type(message.content)
    if kind not in CONTENT_OF[message.performative] or kind is contents.Unverified:
        raise DocumentError(f"{kind.__name__} cannot be sent as {message.performative}")


def check_version(value: str) -> None:
    """Check the version of the wire format in a message's metadata; an empty text means that it is missing.

    Raises:
        DocumentError: if it is another version.
    """
    if value != str(WIRE_VERSION):
        got = shown(value) if value else None
        raise DocumentError(f"metadata: {wrong_version('the wire format', got, WIRE_VERSION, SAME_VERSION)}")


def read_performative(text: str) -> Performative:
    """Read a performative.

    Raises:
        DocumentError: if the name is unknown.
    """
    try:
        return Performative(text)
    except ValueError as error:
        right = schema.nearest_name(text[:64], tuple(Performative))
        raise DocumentError(f"metadata: performative: got {shown(text)}, {right}") from error
