"""Encodes a message of the market as an XMPP stanza and decodes it. Pure text in and out.

Plain SPADE agents understand the stanza: a chat message with its metadata in a data form (XEP-0004) that has the title
`spade:x:metadata`. This module corrects three faults of SPADE 4.1.4. The thread survives empty metadata. Characters for
which the server would disconnect the sender are refused before sending. Long bodies, and bodies that XML would change
(carriage returns), travel compressed.
"""

from __future__ import annotations

import base64
import binascii
import xml.etree.ElementTree as ElementTree  # only walks elements that the XMPP stream has parsed
import zlib
from xml.sax.saxutils import escape

from ramp.errors import DocumentError, TransportError
from ramp.model.acl import EncodedMessage
from ramp.rfql.xml.markup import FORBIDDEN
from ramp.xmpp.address import sender_of

STANZA_MAX_BYTES = 90_000
"""Maximum sent stanza in bytes of XML after escaping; Prosody 0.12 and ejabberd disconnect at 100 to 260 kB."""

COMPRESS_FROM_BYTES = 4_096
"""Minimum compressed body in bytes of UTF-8; base64 costs more than compression gains for shorter ones."""

INFLATED_MAX_BYTES = 1_000_000
"""Maximum body after decompression in bytes; without a limit, a stanza of 90 kB could expand to 60 MB."""

ENCODING_KEY = "body-encoding"
"""Metadata field with the encoding of the body; absent for plain text."""

ENCODING_ZLIB = "zlib+base64"

_THREAD_KEY = "_thread_node"  # SPADE's name for the thread inside its metadata form
_METADATA_TITLE = "spade:x:metadata"
_RESERVED_KEYS = frozenset({_THREAD_KEY, ENCODING_KEY})

_CLIENT = "{jabber:client}"
_DATA_FORM = "{jabber:x:data}"
_STANZAS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"

_QUOTE = {'"': "&quot;"}


def content_of(message: EncodedMessage) -> str:
    """Return the stanza of a message after its start tag, which is the same for all its receivers.

    Args:
        message: its body is not empty, because servers drop messages without one. Its metadata has at least one field
            and no empty value, because Prosody and ejabberd drop those.

    Raises:
        TransportError: no body, no metadata, an empty or reserved metadata field.
        DocumentError: a character that XML 1.0 does not allow (https://www.w3.org/TR/xml/#charsets), or a body over
            the receivers' limit.
    """
    _check_fields(message)
    fields = dict(message.metadata)
    content = _compressed(message)
    if content is None:
        content = escape(message.body)
    else:
        fields[ENCODING_KEY] = ENCODING_ZLIB
    if message.thread:
        fields[_THREAD_KEY] = message.thread
    parts = [
        f'<body>{content}</body><x xmlns="jabber:x:data" type="form"><title>{_METADATA_TITLE}</title>',
        *(
            f'<field var="{escape(key, _QUOTE)}" type="text-single"><value>{escape(value)}</value></field>'
            for key, value in fields.items()
        ),
        "</x></message>",
    ]
    return "".join(parts)


def addressed(content: str, *, to: str, sender: str, stanza_id: str) -> str:
    """Return the stanza for one receiver as XML text.

    Args:
        content: from `content_of`.
        to: receiver, `user@domain`.
        sender: address of the sending agent.
        stanza_id: unique id of this stanza.

    Raises:
        DocumentError: the stanza exceeds the limit.
    """
    head = (
        f'<message xmlns="jabber:client" type="chat" to="{escape(to, _QUOTE)}" from="{escape(sender, _QUOTE)}" '
        f'id="{escape(stanza_id, _QUOTE)}">'
    )
    stanza = head + content
    size = len(stanza.encode("utf-8"))
    if size > STANZA_MAX_BYTES:
        raise DocumentError(
            f"message too large: got {size} bytes of XML, maximum {STANZA_MAX_BYTES}; send a smaller document",
            source=f"message to {to}",
        )
    return stanza


def _check_fields(message: EncodedMessage) -> None:
    to, metadata = message.peer, message.metadata
    if not message.body:
        raise TransportError(f"message to {to}: the body is empty; XMPP servers do not deliver such messages")
    if not metadata:
        raise TransportError(f"message to {to}: no metadata; give at least one field (the performative)")
    for key, value in metadata.items():
        if not key or key in _RESERVED_KEYS:
            raise TransportError(f"message to {to}: the metadata field {key} is reserved; use another name")
        if not value:
            raise TransportError(f"message to {to}: the metadata field {key} is empty; leave it out")
    _refuse_forbidden(to, "body", message.body)
    _refuse_forbidden(to, "thread", message.thread, carriage_returns=False)
    for key, value in metadata.items():
        _refuse_forbidden(to, f"metadata field {key}", key + value, carriage_returns=False)


def _refuse_forbidden(to: str, where: str, text: str, *, carriage_returns: bool = True) -> None:
    found = FORBIDDEN.search(text)
    if found is None and not carriage_returns and "\r" in text:
        raise DocumentError(
            f"{where}: a carriage return does not survive XML; use a line feed", source=f"message to {to}"
        )
    if found is not None:
        raise DocumentError(
            f"{where}: character U+{ord(found.group()):04X} at position {found.start()} is not allowed in XML 1.0",
            source=f"message to {to}",
        )


def _compressed(message: EncodedMessage) -> str | None:
    """Return the body as zlib+base64 if that is shorter or XML would change it; else None."""
    raw = message.body.encode("utf-8")
    must = "\r" in message.body  # XML parsers turn CR and CR LF into LF (XML 1.0, 2.11)
    if not must and len(raw) < COMPRESS_FROM_BYTES:
        return None
    if len(raw) > INFLATED_MAX_BYTES:
        raise DocumentError(
            f"body too large: got {len(raw)} bytes, expected at most {INFLATED_MAX_BYTES}; send a smaller document",
            source=f"message to {message.peer}",
        )
    packed = base64.b64encode(zlib.compress(raw, 1)).decode("ascii")
    return packed if must or len(packed) < len(raw) else None


def decode_element(element: ElementTree.Element) -> EncodedMessage:
    """Decode a `message` element in the `jabber:client` namespace.

    Args:
        element: the element from the stream parser.

    Returns:
        The message; body "" and metadata {} if the element has none. The body of an error stanza stays as it is.

    Raises:
        DocumentError: the sender's address is not canonical, or the body does not have the stated encoding or is longer
            than `INFLATED_MAX_BYTES`.
    """
    sender_bare = sender_of(element.get("from"))
    if sender_bare is None:
        sender = (element.get("from") or "")[:100]
        raise DocumentError(f"invalid sender: got {sender!a}, expected a canonical address user@domain")
    body = ""
    fields: dict[str, str] = {}
    for child in element:
        if child.tag == f"{_CLIENT}body":
            body = child.text or ""
        elif child.tag == f"{_DATA_FORM}x" and child.findtext(f"{_DATA_FORM}title") == _METADATA_TITLE:
            for item in child.iterfind(f"{_DATA_FORM}field"):
                key, value = item.get("var"), item.findtext(f"{_DATA_FORM}value")
                if key and value is not None:
                    fields[key] = value
    thread = fields.pop(_THREAD_KEY, "")
    encoding = fields.pop(ENCODING_KEY, None)
    if encoding is not None and element.get("type") != "error":  # only the condition of a bounce matters
        body = decode_body(body, encoding, source=f"message from {sender_bare}")
    return EncodedMessage(sender_bare, body, fields, thread)


def decode_body(text: str, encoding: str, *, source: str) -> str:
    """Decode a body with the encoding of its metadata field `body-encoding`.

    Args:
        text: encoded body.
        encoding: value of the metadata field.
        source: name of the message for errors.

    Raises:
        DocumentError: the encoding is unknown, the body does not have it, or the result is longer than
            `INFLATED_MAX_BYTES`.
    """
    if encoding != ENCODING_ZLIB:
        raise DocumentError(f"unknown body encoding: got {encoding[:20]!a}, expected {ENCODING_ZLIB}", source=source)
    unpacker = zlib.decompressobj()
    try:
        # one byte more than allowed shows whether the body exceeds the limit
        raw = unpacker.decompress(base64.b64decode(text, validate=True), INFLATED_MAX_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise DocumentError(f"the body is not {ENCODING_ZLIB}: {error}", source=source) from None
    if len(raw) > INFLATED_MAX_BYTES:
        raise DocumentError(f"the decompressed body is larger than {INFLATED_MAX_BYTES} bytes", source=source)
    if not unpacker.eof:
        raise DocumentError("the compressed body is incomplete", source=source)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"the body is not UTF-8: {error.reason} at byte {error.start}", source=source) from None


def condition_of(element: ElementTree.Element) -> str:
    """Return the condition of an error stanza, for example `service-unavailable` (RFC 6120, 8.3.3)."""
    for child in element.iterfind(f"{_CLIENT}error/*"):
        if child.tag.startswith(_STANZAS) and child.tag != f"{_STANZAS}text":
            return child.tag.removeprefix(_STANZAS)
    return "undefined-condition"
