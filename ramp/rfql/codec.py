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
    CONTENT_OF,
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
_SIGNED_AT: Final = "signed-at"
_SIGNATURE: Final = "signature"
_CERTIFICATE: Final = "certificate"
_SEAL_SLOTS: Final = frozenset({_SIGNED_AT, _SIGNATURE, _CERTIFICATE})


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
    metadata = _metadata(message)
    if message.seal is None:
        body = documents.write_content(message.content)
    else:
        sealed = seals.parse(message.seal.text)
        if sealed.headers() != seals.unsigned(message, sealed.body, sealed.signed_at).headers():
            raise DocumentError(f"the seal of this {kind.__name__} belongs to another message")
        body = sealed.body
        metadata |= {
            _SIGNED_AT: sealed.signed_at,
            _SIGNATURE: sealed.signature,
            _CERTIFICATE: sealed.certificate,
        }
    check_size(body, f"{kind.__name__} of {message.conversation_id}")
    return EncodedMessage(message.receiver, body, metadata, message.conversation_id)


def _metadata(message: Message) -> dict[str, str]:
    metadata = {
        "performative": message.performative.value,
        "conversation-id": message.conversation_id,
        "ontology": ONTOLOGY,
        "language": LANGUAGE,
        _VERSION: str(WIRE_VERSION),
    }
    content = message.content
    metadata[DOCUMENT_FIELD] = type(content.body if isinstance(content, Signed) else content).__name__
    interaction = DECLARED[type(content)].interaction
    if interaction:
        metadata["protocol"] = interaction.value
    if message.reply_with:
        metadata["reply-with"] = message.reply_with
    if message.in_reply_to:
        metadata["in-reply-to"] = message.in_reply_to
    if message.reply_by is not None:
        metadata["reply-by"] = seals.write_reply_by(message.reply_by)
    return metadata


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
    if not _SEAL_SLOTS.isdisjoint(metadata):
        return _opened(encoded, receiver, conversation_id, notary, now)
    # By the name of the document, before it is read: a commitment that does not hold would be `Unverified` afterwards.
    kind = documents.content_named(root_name(encoded.body))
    if kind is not None and kind in sealed:
        raise SealInvalid(f"{performative} of {sender}: {kind.__name__} without a seal")
    content = documents.read_content(encoded.body, notary, now, f"{performative} of {sender}")
    if type(content) not in CONTENT_OF[performative]:
        raise DocumentError(f"{performative} of {sender}: {type(content).__name__} does not go with this performative")
    return Message(
        performative=performative,
        sender=sender,
        receiver=receiver,
        conversation_id=conversation_id,
        content=content,
        reply_with=metadata.get("reply-with", ""),
        in_reply_to=metadata.get("in-reply-to", ""),
        reply_by=seals.read_reply_by(metadata.get("reply-by")),
    )


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


def _opened(encoded: EncodedMessage, receiver: str, conversation_id: str, notary: Verifier, now: Instant) -> Message:
    sender, body, metadata = encoded.peer, encoded.body, encoded.metadata
    check_size(body, f"{metadata.get('performative')} of {sender}")
    text = seals.SealedText(
        performative=metadata.get("performative", ""),
        document=root_name(body),
        sender=sender,
        receiver=receiver,
        conversation_id=conversation_id,
        reply_with=metadata.get("reply-with", ""),
        in_reply_to=metadata.get("in-reply-to", ""),
        reply_by=metadata.get("reply-by", ""),
        signed_at=metadata.get(_SIGNED_AT, ""),
        body=body,
        signature=metadata.get(_SIGNATURE, ""),
        certificate=metadata.get(_CERTIFICATE, ""),
    ).text()
    message = notary.open(text, now)
    if message.seal is None:
        raise SealInvalid(f"{message.performative} of {sender}: its seal was not opened")
    if type(message.content) not in ANY_AGE and message.seal.signed_at < now - SEAL_AGE_MAX:
        raise SealInvalid(f"{message.performative} of {sender}: sealed at {metadata[_SIGNED_AT]}, too long ago")
    return message
