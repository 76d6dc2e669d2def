"""Convert messages to metadata and XML, and back (FIPA SC00061 message slots; documents of `schemas/`).

The metadata's keys are FIPA's slot names and the `version` of the wire format; the thread is the conversation id. The
body is one document and never empty.
A sealed message also has `signed-at`, `signature` and `certificate`. The receiver rebuilds the sealed text from the
message, with the sender as the transport authenticated it and itself as addressee, so a seal fits no other message.
"""

from __future__ import annotations

from typing import Final

from ramp.errors import DocumentError, SealInvalid
from ramp.model.acl import (
    ANY_AGE,
    LANGUAGE,
    ONTOLOGY,
    SEALED,
    WIRE_VERSION,
    EncodedMessage,
    Message,
    Performative,
)
from ramp.model.agreement import Signed
from ramp.model.communicative_acts import DECLARED
from ramp.model.contents import NotUnderstood
from ramp.model.instant import Instant
from ramp.model.ports import Verifier
from ramp.model.seal import SEAL_AGE_MAX
from ramp.rfql import documents
from ramp.rfql.signing import seals
from ramp.rfql.xml.parser import check_size, root_name

DOCUMENT_FIELD: Final = "x-document"
"""Metadata field with the kind of document; it distinguishes behaviours with equal performatives."""

_VERSION: Final = "version"
_SEAL_SLOTS: Final = ("signed-at", "signature", "certificate")
_SLOTS: Final = {slot: slot.replace("-", "_") for slot in ("reply-with", "in-reply-to", "reply-by", *_SEAL_SLOTS)}
"""Optional slots of the metadata, and the fields of `SealedText` with their values."""


def encode(message: Message) -> EncodedMessage:
    """Encode a message; a sealed one exactly as it was sealed.

    Raises:
        DocumentError: if the document is over the size limit;
            or for values that the document cannot carry, an unsigned signable, a content that is never
            sent (`Unverified`) or does not go with the performative, or a missing seal.
    """
    seals.check_sendable(message)
    kind = type(message.content)
    if message.seal is None and kind in SEALED:
        raise DocumentError(f"{kind.__name__} needs a seal; its receiver would drop it")
    if message.seal is None:
        sealed = seals.unsigned(message, documents.write_content(message.content), "")
    else:
        sealed = seals.parse(message.seal.text)
        if sealed.headers() != seals.unsigned(message, sealed.body, sealed.signed_at).headers():
            raise DocumentError(f"the seal of this {kind.__name__} belongs to another message")
    check_size(sealed.body, f"{kind.__name__} of {message.conversation_id}")
    return EncodedMessage(message.receiver, sealed.body, _metadata(message, sealed), message.conversation_id)


def _metadata(message: Message, sealed: seals.SealedText) -> dict[str, str]:
    content = message.content
    metadata = {
        "performative": sealed.performative,
        "conversation-id": message.conversation_id,
        "ontology": ONTOLOGY,
        "language": LANGUAGE,
        _VERSION: str(WIRE_VERSION),
        DOCUMENT_FIELD: type(content.body if isinstance(content, Signed) else content).__name__,
        "protocol": DECLARED[type(content)].interaction.value,
        **{slot: getattr(sealed, name) for slot, name in _SLOTS.items()},
    }
    return {slot: value for slot, value in metadata.items() if value}


def decode(
    encoded: EncodedMessage, receiver: str, notary: Verifier, now: Instant, *, sealed: frozenset[type] = SEALED
) -> Message:
    """Decode a message as it travels.

    Args:
        encoded: the message; its thread replaces a missing conversation id.
        receiver: name of the receiving party.
        notary: the receiver's; checks seals and signed documents.
        now: the present.
        sealed: contents that require their sender's seal; seals on other contents are checked as well.

    Raises:
        SealInvalid: if the seal is missing or old, or not the sender's own, for this receiver, over this very message
            and in a role that may send it; drop such a message without an answer.
        DocumentError: if metadata or document are invalid, or do not go together. A signed document that does not
            verify raises no error: its content is `Unverified`.
    """
    sender, metadata = encoded.peer, encoded.metadata
    seals.check_version(metadata.get(_VERSION, ""))
    performative = seals.read_performative(metadata.get("performative", ""))
    for slot, expected in (("ontology", ONTOLOGY), ("language", LANGUAGE)):
        if metadata.get(slot) != expected:
            raise DocumentError(f"metadata: {slot}: got {metadata.get(slot)!r}, expected {expected!r}")
    conversation_id = metadata.get("conversation-id") or encoded.thread
    if not conversation_id:
        raise DocumentError("metadata: conversation-id is missing")
    seals.check_header("conversation-id", conversation_id)
    for slot in ("reply-with", "in-reply-to"):
        seals.check_header(slot, metadata.get(slot, ""))
    received = seals.SealedText(
        performative=performative.value,
        document=root_name(encoded.body),
        sender=sender,
        receiver=receiver,
        conversation_id=conversation_id,
        body=encoded.body,
        **{name: metadata.get(slot, "") for slot, name in _SLOTS.items()},
    )
    if any(slot in metadata for slot in _SEAL_SLOTS):
        return _opened(received, notary, now)
    # By the name of the document, before it is read: a commitment that does not hold would be `Unverified` afterwards.
    kind = documents.content_named(received.document)
    if kind is not None and kind in sealed:
        raise SealInvalid(f"{performative} of {sender}: {kind.__name__} without a seal")
    content = documents.read_content(encoded.body, notary, now, f"{performative} of {sender}")
    return seals.message_of(received, type(content), content)


def not_understood(encoded: EncodedMessage, receiver: str, reason: str) -> Message | None:
    """Return the receiver's answer to a message that it cannot decode; None if that was such an answer."""
    metadata = encoded.metadata
    if metadata.get("performative") == Performative.NOT_UNDERSTOOD.value:
        return None
    conversation_id = metadata.get("conversation-id") or encoded.thread or "unknown"
    return Message(
        Performative.NOT_UNDERSTOOD,
        receiver,
        encoded.peer,
        conversation_id,
        NotUnderstood(reason[:1000]),
        in_reply_to=metadata.get("reply-with", ""),
    )


def _opened(received: seals.SealedText, notary: Verifier, now: Instant) -> Message:
    who = f"{received.performative} of {received.sender}"
    check_size(received.body, who)
    message = notary.open(received.text(), now)
    if message.seal is None:
        raise SealInvalid(f"{who}: its seal was not opened")
    if type(message.content) not in ANY_AGE and message.seal.signed_at < now - SEAL_AGE_MAX:
        raise SealInvalid(f"{who}: sealed at {received.signed_at}, too long ago")
    return message
