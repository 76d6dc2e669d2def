"""Messages to metadata and XML, and back (FIPA SC00061 message slots; the contents are the documents of `schemas/`).

The metadata's keys are FIPA's slot names, and `version` of the wire format; the thread is the conversation id; the body
is one document and never empty.
A sealed message has three slots more, `signed-at`, `signature` and `certificate`: the receiver puts the sealed text
together again from what has arrived, with the sender as the transport authenticated it and itself as addressee, so a
seal that was made for anything else does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ramp.errors import DocumentError, MeaningViolation, SealInvalid
from ramp.model.acl import ANY_AGE, CONTENT_OF, LANGUAGE, ONTOLOGY, SEALED, WIRE_VERSION, Message
from ramp.model.communicative_acts import DECLARED
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.rfql import documents, slots
from ramp.rfql.signing import seals
from ramp.rfql.signing.proofs import Verifier
from ramp.rfql.xml.parser import check_size

SEAL_AGE_MAX: Final[Duration] = 10 * MINUTE
"""A message that was sealed longer ago is dropped: five minutes between the clocks, five on the way."""

_VERSION: Final = "version"
_SIGNED_AT: Final = "signed-at"
_SIGNATURE: Final = "signature"
_CERTIFICATE: Final = "certificate"
_SEAL_SLOTS: Final = frozenset({_SIGNED_AT, _SIGNATURE, _CERTIFICATE})


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """A message as it travels.

    Attributes:
        metadata: FIPA slots by name.
        thread: the conversation id.
        body: the XML document.
    """

    metadata: dict[str, str]
    thread: str
    body: str


def encode(message: Message) -> EncodedMessage:
    """Turn a message into what travels; of a sealed one, what was sealed.

    Raises:
        DocumentTooLarge: if the document is over the size limit.
        MeaningViolation: for values that the document cannot carry, an unsigned signable, a content that is never
            sent (`Unverified`) or does not go with the performative, or that must be sealed and is not.
    """
    slots.check_sendable(message)
    kind = type(message.content)
    if message.seal is None and kind in SEALED:
        raise MeaningViolation(f"{kind.__name__} is not sealed; nobody would believe it")
    metadata = _metadata(message)
    if message.seal is None:
        body = documents.write_content(message.content)
    else:
        sealed = seals.parse(message.seal.text)
        if _sealed_slots(sealed) != _slots_of(message):
            raise MeaningViolation(f"the seal of this {kind.__name__} is that of another message")
        body = sealed.body
        metadata |= {
            _SIGNED_AT: sealed.signed_at,
            _SIGNATURE: sealed.signature,
            _CERTIFICATE: sealed.certificate,
        }
    check_size(body, f"{kind.__name__} of {message.conversation_id}")
    return EncodedMessage(metadata, message.conversation_id, body)


def _slots_of(message: Message) -> tuple[str, ...]:
    return (
        message.performative.value,
        message.sender,
        message.receiver,
        message.conversation_id,
        message.reply_with,
        message.in_reply_to,
        "" if message.reply_by is None else slots.write_reply_by(message.reply_by),
    )


def _sealed_slots(sealed: seals.SealedText) -> tuple[str, ...]:
    return (
        sealed.performative,
        sealed.sender,
        sealed.receiver,
        sealed.conversation_id,
        sealed.reply_with,
        sealed.in_reply_to,
        sealed.reply_by,
    )


def _metadata(message: Message) -> dict[str, str]:
    metadata = {
        "performative": message.performative.value,
        "conversation-id": message.conversation_id,
        "ontology": ONTOLOGY,
        "language": LANGUAGE,
        _VERSION: str(WIRE_VERSION),
    }
    interaction = DECLARED[type(message.content)].interaction
    if interaction:
        metadata["protocol"] = interaction.value
    if message.reply_with:
        metadata["reply-with"] = message.reply_with
    if message.in_reply_to:
        metadata["in-reply-to"] = message.in_reply_to
    if message.reply_by is not None:
        metadata["reply-by"] = slots.write_reply_by(message.reply_by)
    return metadata


def decode(
    sender: str,
    receiver: str,
    metadata: Mapping[str, str],
    thread: str | None,
    body: str,
    notary: Verifier,
    now: Instant,
    *,
    sealed: frozenset[type] = SEALED,
) -> Message:
    """Turn what has travelled into a message.

    Args:
        sender: name of the sending party, as the transport authenticated it.
        receiver: name of the receiving party.
        metadata: FIPA slots by name.
        thread: the transport's thread; stands in for a missing conversation id.
        body: the XML document.
        notary: the receiver's; checks seals and signed documents.
        now: the present.
        sealed: contents that are read for their sender's seal only; a seal on another one is checked as well.

    Raises:
        SealInvalid: if the seal is missing or old, or not the sender's own, for this receiver, over this very message
            and in a role that may send it; to be dropped without an answer.
        DocumentError: if metadata or document are not right, or do not go together. A signed document that does not
            verify raises nothing: its content is `Unverified`.
    """
    slots.check_version(metadata.get(_VERSION, ""))
    performative = slots.read_performative(metadata.get("performative", ""))
    for slot, expected in (("ontology", ONTOLOGY), ("language", LANGUAGE)):
        if metadata.get(slot) != expected:
            raise DocumentError(f"metadata: {slot} is {metadata.get(slot)!r}; right would be {expected!r}")
    conversation_id = metadata.get("conversation-id") or thread or ""
    if not conversation_id:
        raise DocumentError("metadata: conversation-id is missing")
    seals.check_header("conversation-id", conversation_id)
    seals.check_header("reply-with", metadata.get("reply-with", ""))
    if not _SEAL_SLOTS.isdisjoint(metadata):
        return _opened(sender, receiver, metadata, conversation_id, body, notary, now)
    # By the name of the document, before it is read: a commitment that does not hold would be `Unverified` afterwards.
    kind = documents.content_named(documents.root_name(body))
    if kind is not None and kind in sealed:
        raise SealInvalid(f"{performative} of {sender}: {kind.__name__} without a seal")
    content = documents.read_content(body, notary, now, f"{performative} of {sender}")
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
        reply_by=slots.read_reply_by(metadata.get("reply-by")),
    )


def _opened(
    sender: str,
    receiver: str,
    metadata: Mapping[str, str],
    conversation_id: str,
    body: str,
    notary: Verifier,
    now: Instant,
) -> Message:
    check_size(body, f"{metadata.get('performative')} of {sender}")
    text = seals.SealedText(
        performative=metadata.get("performative", ""),
        document=documents.root_name(body),
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
