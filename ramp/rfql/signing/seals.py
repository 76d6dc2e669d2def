"""Sealed messages as text: the signed bytes, their storage, and the detached signature over them.

The sealed bytes are, in UTF-8, a first line that no XML signature's SignedInfo can begin with (that one begins with
`<`), one line for each of `HEADERS`, an empty line, and the document exactly as it is sent:

    RAMP sealed message 1
    performative: agree
    document: HoldGranted
    from: thunder1@localhost
    to: alice@localhost
    conversation-id: request-4
    reply-with:
    in-reply-to: accept-1
    reply-by:
    signed-at: 2026-11-21T08:00:00.000000Z

    <HoldGranted xmlns="urn:ramp:market:1" .../>
    signature: MEUCIQ...
    certificate: MIIBwD...

The last two lines follow the sealed bytes in the text form, which is kept and passed on. A value cannot hold a line
break, so a text can be read in one way only; every reader writes it again and compares.

Signatures: ECDSA over P-256 with SHA-256 (DER).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, fields
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from ramp.errors import SAME_VERSION, DocumentError, SealInvalid, wrong_version
from ramp.model import contents, instant
from ramp.model.acl import CONTENT_OF, WIRE_VERSION, Message, Performative
from ramp.model.instant import MILLISECOND, Duration, Instant
from ramp.model.seal import Seal
from ramp.rfql.signing.certificates import CERTIFICATE_BYTES_MAX, PrivateKey, PublicKey
from ramp.rfql.xml import schema
from ramp.rfql.xml.markup import shown
from ramp.rfql.xml.parser import DOCUMENT_BYTES_MAX, check_size, root_name
from ramp.text import is_printable

FIRST_LINE: Final = "RAMP sealed message 1"
"""Form and version of the signed bytes."""

HEADERS: Final = (
    "performative",
    "document",
    "from",
    "to",
    "conversation-id",
    "reply-with",
    "in-reply-to",
    "reply-by",
    "signed-at",
)
"""Names of the header lines, in order; `document` is the name of the document's root element, that of its content."""

HEADER_CHARACTERS_MAX: Final = 1_000
"""Longest header value; identifiers and names have 200 characters at most."""

SIGNATURE_BYTES_MAX: Final = 1_024
"""Longest signature accepted."""

TEXT_BYTES_MAX: Final = DOCUMENT_BYTES_MAX + 4 * HEADER_CHARACTERS_MAX * len(HEADERS) + 2 * CERTIFICATE_BYTES_MAX
"""Longest sealed message as text: the longest document and everything around it."""


_MILLISECONDS_DIGITS_MAX: Final = 12
"""Digits of the longest deadline for an answer, thirty years."""


@dataclass(frozen=True, slots=True)
class SealedText:
    """A sealed message in its parts, as they are written; nothing is verified yet.

    Attributes:
        performative: FIPA communicative act.
        document: name of the document's root element.
        sender: the sending party.
        receiver: the addressee.
        conversation_id: the conversation.
        reply_with: id for an answer to quote; may be empty.
        in_reply_to: the id that it answers; may be empty.
        reply_by: milliseconds; may be empty.
        signed_at: the signer's clock, to the microsecond.
        body: the document.
        signature: in base64.
        certificate: the signer's, DER in base64.
    """

    performative: str
    document: str
    sender: str
    receiver: str
    conversation_id: str
    reply_with: str
    in_reply_to: str
    reply_by: str
    signed_at: str
    body: str
    signature: str = ""
    certificate: str = ""

    def headers(self) -> tuple[str, ...]:
        """Return the values of the header lines, in the order of `HEADERS`."""
        return tuple(getattr(self, name) for name in _HEADER_FIELDS)

    def sealed_part(self) -> str:
        """Return the bytes that the signature covers.

        Raises:
            SealInvalid: for a header value that is not one printable line, or is too long.
        """
        lines = [FIRST_LINE]
        for name, value in zip(HEADERS, self.headers(), strict=True):
            check_header(name, value)
            lines.append(f"{name}: {value}" if value else f"{name}:")
        return "\n".join((*lines, "", self.body))

    def text(self) -> str:
        """Return the message with its signature, as it is kept and passed on."""
        return f"{self.sealed_part()}\nsignature: {self.signature}\ncertificate: {self.certificate}\n"

    def moment(self) -> Instant:
        """Return when it was signed, by the signer's clock.

        Raises:
            SealInvalid: if the time is not in the one form allowed.
        """
        try:
            moment = instant.from_iso(self.signed_at)
            if write_moment(moment) == self.signed_at:
                return moment
        except (ValueError, OverflowError):
            pass
        right = "a time such as 2026-11-21T08:00:00.000000Z"
        raise SealInvalid(f"signed-at: got {shown(self.signed_at)}, expected {right}")

    def certificate_bytes(self) -> bytes:
        """Return the signer's certificate in DER; `SealInvalid` if it is missing, too long, or no base64."""
        return _unpacked("certificate", self.certificate, CERTIFICATE_BYTES_MAX)

    def check_signature(self, key: PublicKey) -> None:
        """Check the signature over the sealed part.

        Raises:
            SealInvalid: if it is missing, or does not fit the message or the key.
        """
        signature = _unpacked("signature", self.signature, SIGNATURE_BYTES_MAX)
        data = check_size(self.sealed_part(), limit=TEXT_BYTES_MAX)
        try:
            key.verify(signature, data, _ECDSA)
        except InvalidSignature as error:
            raise SealInvalid(f"the seal does not fit the message from {shown(self.sender)}") from error


_HEADER_FIELDS: Final = tuple(item.name for item in fields(SealedText))[: len(HEADERS)]


def unsigned(message: Message, body: str, signed_at: str) -> SealedText:
    """Return what a seal of a message covers, without its signature."""
    return SealedText(
        performative=message.performative.value,
        document=root_name(body),
        sender=message.sender,
        receiver=message.receiver,
        conversation_id=message.conversation_id,
        reply_with=message.reply_with,
        in_reply_to=message.in_reply_to,
        reply_by="" if message.reply_by is None else write_reply_by(message.reply_by),
        signed_at=signed_at,
        body=body,
    )


def message_of(sealed: SealedText, kind: type, content: contents.Content, seal: Seal | None = None) -> Message:
    """Return the message of these headers.

    Args:
        sealed: the headers.
        kind: of content, which the performative must allow.
        content: as read; it may stand in for one of that kind.
        seal: as verified, if there is one.

    Raises:
        DocumentError: if the performative does not allow the kind, or a header is invalid.
    """
    performative = read_performative(sealed.performative)
    if kind not in CONTENT_OF[performative]:
        raise DocumentError(f"{performative} of {sealed.sender}: {kind.__name__} does not go with this performative")
    return Message(
        performative,
        sealed.sender,
        sealed.receiver,
        sealed.conversation_id,
        content,
        sealed.reply_with,
        sealed.in_reply_to,
        read_reply_by(sealed.reply_by),
        seal,
    )


_ECDSA: Final = ec.ECDSA(hashes.SHA256())


def check_header(name: str, value: str) -> None:
    """Check that a value fits a header line, also of unsealed messages, because a sealed answer will quote it.

    Raises:
        SealInvalid: for one that is not one printable line, or is too long.
    """
    if not is_printable(value):
        raise SealInvalid(f"{name} must be one line of printable characters: got {shown(value)}")
    if len(value) > HEADER_CHARACTERS_MAX:
        raise SealInvalid(f"{name} too long: got {len(value)} characters, expected at most {HEADER_CHARACTERS_MAX}")


def sign(part: str, key: PrivateKey) -> str:
    """Return the signature over a sealed part, in base64."""
    return pack(key.sign(part.encode(), _ECDSA))


def pack(data: bytes) -> str:
    """Write bytes as base64 in one line."""
    return base64.b64encode(data).decode("ascii")


def _unpacked(name: str, text: str, bytes_max: int) -> bytes:
    if not text:
        raise SealInvalid(f"the {name} is missing")
    if len(text) > 4 * (bytes_max // 3 + 1):
        raise SealInvalid(f"{name} too long: got {len(text)} characters, expected at most {bytes_max} bytes in base64")
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise SealInvalid(f"the {name} is not base64: {error}") from error
    if pack(data) != text:
        raise SealInvalid(f"the {name} is not canonical base64")
    return data


def write_moment(moment: Instant) -> str:
    """Write an instant as the header `signed-at`, always with microseconds."""
    text = instant.to_datetime(moment).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def looks_sealed(text: str) -> bool:
    """Whether a text begins like a sealed message."""
    return text.startswith(FIRST_LINE + "\n")


def parse(text: str) -> SealedText:
    """Split the text of a sealed message, as `SealedText.text` writes it, into its parts, without verifying it.

    Raises:
        DocumentError: over the size limit, or no text at all.
        SealInvalid: if it is no sealed message, or not in the one form allowed.
    """
    check_size(text, limit=TEXT_BYTES_MAX)
    if not looks_sealed(text):
        raise SealInvalid(f"it does not begin with the line {FIRST_LINE!r}")
    head, _, rest = text.partition("\n\n")
    lines = head.split("\n")[1:]
    if len(lines) != len(HEADERS):
        raise SealInvalid(f"wrong header lines: got {len(lines)}, expected {', '.join(HEADERS)}")
    values = []
    for name, line in zip(HEADERS, lines, strict=True):
        given, _, value = line.partition(":")
        if given != name:
            raise SealInvalid(f"wrong header line: got {shown(line)}, expected {name!r}")
        values.append(value.removeprefix(" "))
    parts = rest.removesuffix("\n").rsplit("\n", 2)
    if len(parts) != 3 or not parts[1].startswith("signature: ") or not parts[2].startswith("certificate: "):
        raise SealInvalid("its last two lines are not signature and certificate")
    signature, certificate = parts[1].removeprefix("signature: "), parts[2].removeprefix("certificate: ")
    headers = dict(zip(_HEADER_FIELDS, values, strict=True))
    sealed = SealedText(**headers, body=parts[0], signature=signature, certificate=certificate)
    if sealed.text() != text:
        raise SealInvalid("it differs from the canonical form of a sealed message")
    return sealed


# Message slots (FIPA SC00061) as text, in metadata and in header lines


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


def read_reply_by(text: str) -> Duration | None:
    """Read the text of `write_reply_by`; None if it is empty.

    Raises:
        DocumentError: if it is no duration.
    """
    if not text:
        return None
    whole, _, fraction = text.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= _MILLISECONDS_DIGITS_MAX):
        raise DocumentError(f"metadata: reply-by: got {shown(text)}, expected milliseconds such as 1500")
    if fraction and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 3):
        raise DocumentError(f"metadata: reply-by: got {shown(text)}, expected milliseconds such as 1500")
    return int(whole) * MILLISECOND + int(fraction.ljust(3, "0"))
