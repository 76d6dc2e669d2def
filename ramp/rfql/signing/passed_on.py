"""Sealed messages within other documents: as escaped text, to stay byte for byte as they were.

They are opened in full like messages to us, but their addressee is the original one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ramp.errors import DocumentError, SealInvalid
from ramp.model.acl import Message
from ramp.model.seal import Seal
from ramp.rfql.signing import seals
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element

SEALED: Final = "SealedMessage"
Opener = Callable[[str], Message]
"""Reads a sealed text and checks its seal, or raises `DocumentError`."""

Kind = TypeVar("Kind")


def write_sealed(seal: Seal) -> str:
    """Write the element that passes on a sealed message.

    Raises:
        DocumentError: if the seal has no text.
    """
    if not seal.text:
        raise DocumentError(f"the passed-on message of {seal.signer} is not sealed")
    return f"<{SEALED}>{markup.escape_text(seal.text)}</{SEALED}>"


def read_sealed(element: Element, kind: type[Kind], opener: Opener) -> tuple[Kind, Seal]:
    """Read the `SealedMessage` in an element, and its seal.

    Args:
        element: the element around it.
        kind: required content.
        opener: checks the seal.

    Raises:
        DocumentError: if the seal does not hold, or the content is of another kind.
    """
    text = element.findtext(f"{{{MARKET}}}{SEALED}") or ""
    # Checked before opening: a passed-on message passes on no other, so opening ends.
    document = seals.parse(text).document
    if document != kind.__name__:
        raise SealInvalid(f"wrong document in the sealed message: got a {document}, expected a {kind.__name__}")
    message = opener(text)
    if not isinstance(message.content, kind) or message.seal is None:
        raise SealInvalid(f"the sealed message contains no {kind.__name__}")
    return message.content, message.seal
