"""Messages to metadata and XML, and back (FIPA SC00061 message slots; the contents are the documents of `schemas/`).

The metadata's keys are FIPA's slot names; the thread is the conversation id; the body is one document and never empty.
What comes in is parsed safely, checked against the schema and against `CONTENT_OF`; signed documents go through the
notary, and one that does not verify becomes `Unverified`, so that the machines can refuse it with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ramp.errors import (
    CertificateExpired,
    DocumentError,
    MalformedXml,
    MeaningViolation,
    SchemaViolation,
    SignerUnknown,
)
from ramp.model import contents
from ramp.model.acl import CONTENT_OF, LANGUAGE, ONTOLOGY, Message, Performative
from ramp.model.agreement import Signed
from ramp.model.instant import MILLISECOND, Duration
from ramp.rfql import agreements, directory, offers, payments, schema, statements
from ramp.rfql.namespaces import MARKET
from ramp.rfql.parser import Element, check_size, parse_wire
from ramp.rfql.record import Record

CONTRACT_NET: Final = "fipa-iterated-contract-net"
REQUEST: Final = "fipa-request"
QUERY: Final = "fipa-query"
SUBSCRIBE: Final = "fipa-subscribe"
"""FIPA interaction protocols (SC00030, SC00026, SC00027, SC00035), slot `protocol` of the metadata; for information."""


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


@dataclass(frozen=True, slots=True)
class _Document:
    """How one kind of content is written and read, and the interaction protocol that it belongs to."""

    write: Callable[[Any], str]
    read: Callable[[Element], Any]
    protocol: str


def _flat(record: Record[Any], protocol: str) -> tuple[type, str, _Document]:
    return record.content, record.tag, _Document(record.write, record.read, protocol)


_DOCUMENTS: Final[tuple[tuple[type, str, _Document], ...]] = (
    (
        contents.CallForProposals,
        f"{{{MARKET}}}{offers.CALL}",
        _Document(offers.write_call, offers.read_call, CONTRACT_NET),
    ),
    (contents.Proposal, offers.PROPOSAL.tag, _Document(offers.PROPOSAL.write, offers.read_proposal, CONTRACT_NET)),
    *(
        _flat(record, CONTRACT_NET)
        for record in (
            offers.REJECTION,
            offers.ACCEPTANCE,
            offers.HOLD_GRANTED,
            offers.HOLD_REFUSED,
            offers.HOLD_CANCELLED,
            offers.CONFIRMED,
            offers.FAILED,
        )
    ),
    *(
        _flat(record, REQUEST)
        for record in (
            agreements.CANCELLATION_DONE,
            agreements.CANCELLATION_REFUSED,
            payments.PAYMENT_MADE,
            payments.PAYMENT_REFUSED,
            payments.REFUND_MADE,
            payments.REFUND_REFUSED,
        )
    ),
    *(
        _flat(record, QUERY)
        for record in (
            payments.PAYMENT_QUERY,
            payments.PAYMENT_STATUS,
            statements.ACCOUNT_STATEMENT,
            statements.ACCOUNT_QUERY_REFUSED,
            directory.MACHINE_QUERY,
            directory.MACHINE_STATUS,
            directory.DIRECTORY_QUERY,
        )
    ),
    _flat(directory.REGISTRATION, SUBSCRIBE),
    _flat(directory.DEREGISTRATION, SUBSCRIBE),
    (
        contents.DirectoryListing,
        f"{{{MARKET}}}{directory.LISTING}",
        _Document(directory.write_listing, directory.read_listing, QUERY),
    ),
    _flat(offers.NOT_UNDERSTOOD, ""),
)
_BY_CONTENT: Final = {content: document for content, _, document in _DOCUMENTS}
_BY_TAG: Final = {tag: document for _, tag, document in _DOCUMENTS}
_SETTLED_TAG: Final = f"{{{MARKET}}}{agreements.SETTLED}"


def encode(message: Message) -> EncodedMessage:
    """Turn a message into what travels.

    Raises:
        DocumentTooLarge: if the document is over the size limit.
        MeaningViolation: for values that the document cannot carry, an unsigned signable, or a content that is never
            sent (`Unverified`) or does not go with the performative.
    """
    content = message.content
    kind = type(content)
    if kind not in CONTENT_OF[message.performative] or kind is contents.Unverified:
        raise MeaningViolation(f"{kind.__name__} is not sent as {message.performative}")
    protocol = CONTRACT_NET
    if isinstance(content, Signed):
        body = content.document
        if not body:
            raise MeaningViolation(f"{type(content.body).__name__} is not signed")
        protocol = _PROTOCOL_OF_SIGNED.get(message.performative, REQUEST)
    elif isinstance(content, contents.Settled):
        body = agreements.write_settled(content)
    else:
        document = _BY_CONTENT[kind]
        body = document.write(content)
        protocol = document.protocol
    check_size(body, f"{kind.__name__} of {message.conversation_id}")
    return EncodedMessage(_metadata(message, protocol), message.conversation_id, body)


_PROTOCOL_OF_SIGNED: Final = {Performative.CONFIRM: CONTRACT_NET, Performative.QUERY_REF: QUERY}


def _metadata(message: Message, protocol: str) -> dict[str, str]:
    metadata = {
        "performative": message.performative.value,
        "conversation-id": message.conversation_id,
        "ontology": ONTOLOGY,
        "language": LANGUAGE,
    }
    if protocol:
        metadata["protocol"] = protocol
    if message.reply_with:
        metadata["reply-with"] = message.reply_with
    if message.in_reply_to:
        metadata["in-reply-to"] = message.in_reply_to
    if message.reply_by is not None:
        metadata["reply-by"] = _write_reply_by(message.reply_by)
    return metadata


def decode(
    sender: str,
    receiver: str,
    metadata: Mapping[str, str],
    thread: str | None,
    body: str,
    verify: Callable[[str], Signed],
) -> Message:
    """Turn what has travelled into a message.

    Args:
        sender: name of the sending party, as the transport authenticated it.
        receiver: name of the receiving party.
        metadata: FIPA slots by name.
        thread: the transport's thread; stands in for a missing conversation id.
        body: the XML document.
        verify: the notary's check of a signed document (bound to the present time).

    Raises:
        DocumentError: if metadata or document are not right, or do not go together. A signed document that does not
            verify raises nothing: its content is `Unverified`.
    """
    performative = _performative(metadata)
    conversation_id = metadata.get("conversation-id") or thread or ""
    if not conversation_id:
        raise DocumentError("metadata: conversation-id is missing")
    content = decode_content(body, verify, source=f"{performative} of {sender}")
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
        reply_by=_read_reply_by(metadata.get("reply-by")),
    )


def decode_content(body: str, verify: Callable[[str], Signed], source: str | None = None) -> contents.Content:
    """Turn a message's body into its content.

    Raises:
        DocumentError: if the document is not right; see `decode`.
    """
    root = parse_wire(body, source)
    tag = str(root.tag)
    if tag in agreements.KIND_OF:
        return _signed(root, body, verify)
    document = _BY_TAG.get(tag)
    if document is None and tag != _SETTLED_TAG:
        raise SchemaViolation(f"root element {tag}: no document of the market", source=source)
    schema.check(root, source)
    try:
        if document is None:
            return agreements.read_settled(root, verify(root.text or ""))
        content: contents.Content = document.read(root)
    except ValueError as error:
        raise MeaningViolation(str(error), source=source) from error
    return content


def _signed(root: Element, body: str, verify: Callable[[str], Signed]) -> Signed | contents.Unverified:
    try:
        return verify(body)
    except DocumentError as error:
        kind = agreements.KIND_OF[str(root.tag)]
        return contents.Unverified(
            kind=kind, reference=claimed_reference(root), code=refusal_code(error), detail=error.reason
        )


def claimed_reference(root: Element) -> str:
    """The id that an unverified document claims, for the answer only; empty where it claims none."""
    body = next(iter(root.iterchildren(*agreements.COUNTERSIGNED.values())), root)
    attribute = "nonce" if body.tag == statements.ACCOUNT_QUERY.tag else "agreementId"
    return body.get(attribute, "")[:200]


def refusal_code(error: DocumentError) -> str:
    """The code of `contents.Unverified` for what was wrong with a signed document."""
    if isinstance(error, CertificateExpired):
        return "certificate_expired"
    if isinstance(error, SignerUnknown):
        return "unknown_signer"
    return "malformed" if isinstance(error, MalformedXml | SchemaViolation | MeaningViolation) else "bad_signature"


def _performative(metadata: Mapping[str, str]) -> Performative:
    text = metadata.get("performative", "")
    try:
        performative = Performative(text)
    except ValueError as error:
        right = schema.nearest_name(text, tuple(Performative))
        raise DocumentError(f"metadata: performative is {text!r}; {right}") from error
    for slot, expected in (("ontology", ONTOLOGY), ("language", LANGUAGE)):
        if metadata.get(slot) != expected:
            raise DocumentError(f"metadata: {slot} is {metadata.get(slot)!r}; right would be {expected!r}")
    return performative


def _write_reply_by(reply_by: Duration) -> str:
    """Milliseconds, with decimals only where there is a fraction of one."""
    whole, fraction = divmod(reply_by, MILLISECOND)
    return f"{whole}.{fraction:03d}" if fraction else str(whole)


def _read_reply_by(text: str | None) -> Duration | None:
    if text is None:
        return None
    whole, _, fraction = text.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 15):
        raise DocumentError(f"metadata: reply-by is {text!r}; right would be milliseconds such as 1500")
    if fraction and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 3):
        raise DocumentError(f"metadata: reply-by is {text!r}; right would be milliseconds such as 1500")
    return int(whole) * MILLISECOND + int(fraction.ljust(3, "0"))
