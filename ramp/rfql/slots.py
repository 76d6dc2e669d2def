"""The message slots (FIPA SC00061) as text: performative, deadline for the answer, and their consistency."""

from __future__ import annotations

from ramp.errors import SAME_VERSION, DocumentError, wrong_version
from ramp.model import contents
from ramp.model.acl import CONTENT_OF, WIRE_VERSION, Message, Performative
from ramp.model.instant import MILLISECOND, Duration
from ramp.rfql.xml import schema
from ramp.rfql.xml.markup import shown

_MILLISECONDS_DIGITS_MAX = 12
"""Digits of the longest deadline for an answer, thirty years."""


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
    """Read a performative; `DocumentError` if the name is unknown."""
    try:
        return Performative(text)
    except ValueError as error:
        right = schema.nearest_name(text[:64], tuple(Performative))
        raise DocumentError(f"metadata: performative: got {shown(text)}, {right}") from error


def write_reply_by(reply_by: Duration) -> str:
    """Write milliseconds, with decimals only for fractions."""
    whole, fraction = divmod(reply_by, MILLISECOND)
    return f"{whole}.{fraction:03d}" if fraction else str(whole)


def read_reply_by(text: str | None) -> Duration | None:
    """Read the text of `write_reply_by`; None if the slot is missing.

    Raises:
        DocumentError: if it is no duration.
    """
    if text is None:
        return None
    whole, _, fraction = text.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= _MILLISECONDS_DIGITS_MAX):
        raise DocumentError(f"metadata: reply-by: got {shown(text)}, expected milliseconds such as 1500")
    if fraction and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 3):
        raise DocumentError(f"metadata: reply-by: got {shown(text)}, expected milliseconds such as 1500")
    return int(whole) * MILLISECOND + int(fraction.ljust(3, "0"))
