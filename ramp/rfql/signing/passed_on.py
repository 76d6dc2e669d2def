"""Signed documents and sealed messages within other documents: as escaped text, to stay byte for byte as they were.

A sealed one is opened in full like a message to us, but its addressee is the original one (schemas/proof.xsd).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ramp.errors import DocumentError, SealInvalid
from ramp.model.acl import Message
from ramp.model.agreement import Signed
from ramp.model.seal import Seal
from ramp.rfql.signing import seals
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element

SEALED: Final = "SealedMessage"
SIGNED: Final = "SignedDocument"

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Proofs:
    """Checks the documents that another one passes on; each raises `DocumentError` if one does not hold.

    Attributes:
        verify: reads a signed document.
        open: reads a sealed message.
    """

    verify: Callable[[str], Signed]
    open: Callable[[str], Message]


def _nothing_to_check(_text: str) -> Any:
    raise DocumentError("this document cannot pass on another one")


NO_PROOFS: Final = Proofs(_nothing_to_check, _nothing_to_check)
"""For documents that pass nothing on."""


def write_signed(signed: Signed) -> str:
    """Write the element that passes on a signed document; `DocumentError` if it is not signed."""
    if not signed.document:
        raise DocumentError(f"{type(signed.body).__name__} is not signed")
    return f"<{SIGNED}>{markup.escape_text(signed.document)}</{SIGNED}>"


def read_signed(element: Element, proofs: Proofs) -> Signed:
    """Read a `SignedDocument`; `DocumentError` if its signatures do not hold."""
    return proofs.verify(element.text or "")


def write_sealed(seal: Seal) -> str:
    """Write the element that passes on a sealed message; `DocumentError` if the seal has no text."""
    if not seal.text:
        raise DocumentError(f"the passed-on message of {seal.signer} is not sealed")
    return f"<{SEALED}>{markup.escape_text(seal.text)}</{SEALED}>"


def read_sealed(element: Element, kind: type[Kind], proofs: Proofs) -> tuple[Kind, Seal]:
    """Read the `SealedMessage` in an element, and its seal.

    Args:
        element: the element around it.
        kind: required content.
        proofs: checks the seal.

    Raises:
        DocumentError: if the seal does not hold, or the content is of another kind.
    """
    text = element.findtext(f"{{{MARKET}}}{SEALED}") or ""
    # Checked before opening: a passed-on message passes on no other, so opening ends.
    document = seals.parse(text).document
    if document != kind.__name__:
        raise SealInvalid(f"wrong document in the sealed message: got a {document}, expected a {kind.__name__}")
    message = proofs.open(text)
    if not isinstance(message.content, kind) or message.seal is None:
        raise SealInvalid(f"the sealed message contains no {kind.__name__}")
    return message.content, message.seal
