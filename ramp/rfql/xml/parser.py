"""The safe parser for every document from outside.

It accepts no DTD, entities or network access, and limits size and depth. `parse_wire` reads messages strictly:
comments, processing instructions and CDATA sections are refused, because our own documents never contain them and they
can make two readers see two values. `parse_file` reads files that people write; it drops comments and allows an XML
declaration.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lxml import etree

from ramp.errors import DocumentError

Element = etree._Element  # noqa: SLF001 - lxml has no public name for the type

DOCUMENT_BYTES_MAX: Final = 90_000
"""Largest document: XMPP servers silently cut the connection at 100 kB to 250 kB of markup."""

DOCUMENT_DEPTH_MAX: Final = 16
"""Deepest nesting: twice that of a countersigned agreement, the deepest document."""

_ROOT: Final = re.compile(r"\s*<([A-Za-z]{1,64})[\s/>]")
_too_deep: Final = etree.XPath(f"boolean({'/*' * (DOCUMENT_DEPTH_MAX + 1)})")


def _new_parser(encoding: str | None) -> etree.XMLParser:
    return etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


_wire_parser: Final = _new_parser("utf-8")
_file_parser: Final = _new_parser(None)


def check_size(document: str | bytes, source: str | None = None, limit: int = DOCUMENT_BYTES_MAX) -> bytes:
    """Return the document as UTF-8 bytes, if it is within the limit.

    Args:
        document: text, or bytes as read from a file.
        source: its name in the message.
        limit: maximum number of bytes.

    Raises:
        DocumentError: if it is over the limit;
            or if the text cannot be written in UTF-8.
    """
    if len(document) > limit:
        raise _too_large(len(document), source, limit)
    if isinstance(document, bytes):
        return document
    try:
        data = document.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"not text: {error.reason} at character {error.start}", source=source) from error
    if len(data) > limit:
        raise _too_large(len(data), source, limit)
    return data


def _too_large(size: int, source: str | None, limit: int) -> DocumentError:
    hint = " (the limit of XMPP servers); put fewer units into one document" if limit == DOCUMENT_BYTES_MAX else ""
    return DocumentError(f"document too large: got {size} bytes, expected at most {limit}{hint}", source=source)


def parse_wire(document: str, source: str | None = None, limit: int = DOCUMENT_BYTES_MAX) -> Element:
    """Parse a message's body, or a command's output with a `limit` of its own on size, strictly.

    Raises:
        DocumentError: over the size limit;
            or not well-formed, too deep, or with a DOCTYPE, comment, CDATA section or processing instruction.
    """
    if "<!" in document or "<?" in document:
        index = min(at for at in (document.find("<!"), document.find("<?")) if at >= 0)
        raise DocumentError(
            f"forbidden markup {document[index : index + 12]!r}: messages hold no DOCTYPE, comments, CDATA sections "
            "or processing instructions",
            source=source,
        )
    return _parse(check_size(document, source, limit), _wire_parser, source)


def parse_file(document: str | bytes, source: str | None = None) -> Element:
    """Parse a file written by people: comments are dropped, an XML declaration is fine.

    Raises:
        DocumentError: over the size limit;
            or not well-formed, too deep, or with a DOCTYPE.
    """
    data = check_size(document, source)
    # Text has lost its declared encoding already; the parser must not believe the declaration then.
    root = _parse(data, _wire_parser if isinstance(document, str) else _file_parser, source)
    info: Any = root.getroottree().docinfo
    if info.doctype or info.internalDTD is not None:
        raise DocumentError("a DOCTYPE is forbidden (no entities, no DTD)", source=source)
    return root


def indented(document: str) -> str:
    """Return a document with each element on a line of its own, indented by two spaces a level."""
    return etree.tostring(parse_wire(document), encoding="unicode", pretty_print=True)


def root_name(body: str) -> str:
    """Return the name of a document's root element without parsing it; empty if that is impossible."""
    match = _ROOT.match(body)
    return match[1] if match is not None else ""


def _parse(data: bytes, parser: etree.XMLParser, source: str | None) -> Element:
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"line {error.lineno}: not well-formed XML: {error.msg}", source=source) from error
    if _too_deep(root):
        raise DocumentError(f"elements nested deeper than {DOCUMENT_DEPTH_MAX}", source=source)
    return root
