"""The table of writers and readers of all contents (the documents are those of `schemas/`).

Incoming documents are parsed safely and checked against the schema. Signed documents go through the notary, and one
that does not verify becomes `Unverified`, so that the machines can refuse it with a reason.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ramp.errors import SAME_VERSION, DocumentError, wrong_version
from ramp.model import contents
from ramp.model.agreement import Signed
from ramp.model.communicative_acts import DECLARED
from ramp.model.instant import Instant
from ramp.rfql import agreements, bank_documents, bought_slots, directory, offers
from ramp.rfql.signing import proofs
from ramp.rfql.signing.proofs import Verifier
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element, parse_wire, root_name
from ramp.rfql.xml.record import Record

CALLS_REMEMBERED: Final = 64
"""Number of parsed calls for proposals to remember."""

REMEMBERED_CHARACTERS_MAX: Final = 32_768


@dataclass(frozen=True, slots=True)
class _Document:
    """Writer and reader of one kind of content."""

    content: type
    write: Callable[[Any], str]
    read: Callable[[Element, Verifier, Instant], Any]


def _plain(content: type, write: Callable[[Any], str], read: Callable[[Element], Any]) -> _Document:
    return _Document(content, write, lambda element, _verifier, _now: read(element))


_BY_HAND: Final = (
    _plain(contents.CallForProposals, offers.write_call, offers.read_call),
    _plain(contents.Proposal, offers.PROPOSAL.write, offers.read_proposal),
    _plain(contents.HoldRefused, offers.HOLD_REFUSED.write, offers.read_hold_refused),
    _plain(contents.ChangePosted, agreements.CHANGE_POSTED.write, agreements.read_posted),
    _plain(contents.DirectoryListing, directory.write_listing, directory.read_listing),
    _Document(contents.Commitment, proofs.write_commitment, proofs.read_commitment),
    _Document(contents.Settled, proofs.write_settled, proofs.read_settled),
    _Document(contents.ChangeDone, proofs.write_done, proofs.read_done),
)


def _all() -> Iterator[_Document]:
    """Yield the documents of all contents; a flat content needs no record of its own."""
    yield from _BY_HAND
    known = {document.content for document in _BY_HAND} | {Signed, contents.Unverified}
    families = (bank_documents, bought_slots, directory, offers)
    records = [each for family in families for each in vars(family).values() if isinstance(each, Record)]
    nested = {record.content: record for record in records}
    for kind in DECLARED:
        if kind not in known:
            record = nested[kind] if kind in nested else Record(kind)
            assert record.element == kind.__name__, "it is named after its content"
            yield _plain(kind, record.write, record.read)


# a sealed message names its document after the content
_DOCUMENTS: Final = {document.content.__name__: document for document in _all()}
_BY_CONTENT: Final = {document.content: document for document in _DOCUMENTS.values()}
_BY_TAG: Final = {f"{{{MARKET}}}{name}": document for name, document in _DOCUMENTS.items()}
_SIGNED_NAMES: Final = frozenset(tag.rpartition("}")[2] for tag in agreements.SIGNABLE)


def content_named(name: str) -> type | None:
    """Return the content with this name of its root element, `Signed` for signed ones, or None."""
    if name in _SIGNED_NAMES:
        return Signed
    document = _DOCUMENTS.get(name)
    return document.content if document is not None else None


def write_content(content: contents.Content) -> str:
    """Write a content as a document; a signed one as it was signed.

    Raises:
        DocumentError: for values that the document cannot carry, an unsigned signable, or a content that is never
            sent (`Unverified`).
    """
    if isinstance(content, Signed):
        if not content.document:
            raise DocumentError(f"{type(content.body).__name__} is not signed")
        return content.document
    document = _BY_CONTENT.get(type(content))
    if document is None:
        raise DocumentError(f"{type(content).__name__} is never sent")
    return document.write(content)


def read_content(body: str, verifier: Verifier, now: Instant, source: str | None = None) -> contents.Content:
    """Read the content of a document.

    Args:
        body: the XML text.
        verifier: checks the signatures and seals in it.
        now: the time for which certificates must hold.
        source: the document's name in messages.

    Raises:
        DocumentError: if the document is invalid. A signed document that does not verify, alone or in a commitment,
            raises no error: its content is `Unverified`.
    """
    if len(body) <= REMEMBERED_CHARACTERS_MAX and root_name(body) == contents.CallForProposals.__name__:
        with contextlib.suppress(DocumentError, ValueError):  # reported below, with its source
            return _read_call(body)
    root = parse_wire(body, source)
    tag = str(root.tag)
    if root_name(body) != tag.rpartition("}")[2]:
        raise DocumentError(f"root element {tag} must come first and with no prefix", source=source)
    if tag in agreements.SIGNABLE:
        try:
            return verifier.verify(body, now)
        except DocumentError as error:
            return proofs.unverified(agreements.kind_of(root), proofs.claimed_reference(root), error)
    document = _BY_TAG.get(tag)
    if document is None:
        raise DocumentError(f"unknown root element {tag}{_version_problem(tag)}", source=source)
    schema.check(root, source)
    try:
        content: contents.Content = document.read(root, verifier, now)
    except ValueError as error:
        raise DocumentError(str(error), source=source) from error
    return content


def _version_problem(tag: str) -> str:
    """Say that a document is of another version of the market's namespace, to be added to a sentence; may be empty."""
    namespace = tag.rpartition("}")[0].removeprefix("{")
    if namespace == MARKET or namespace.rpartition(":")[0] != MARKET.rpartition(":")[0]:
        return ""
    return f"; {wrong_version('its namespace', namespace, MARKET, SAME_VERSION)}"


@functools.lru_cache(maxsize=CALLS_REMEMBERED)
def _read_call(body: str) -> contents.CallForProposals:
    """Read a call once for all resources of this process, which receive it in the same words.

    Its content depends on neither reader nor time; errors are not remembered.
    """
    root = parse_wire(body)
    if str(root.tag) != f"{{{MARKET}}}{contents.CallForProposals.__name__}":
        raise DocumentError(f"wrong root element: got {root.tag}, expected a call for proposals")
    schema.check(root)
    return offers.read_call(root)
