"""Text from other parties: the form of identifiers, and characters that no document, terminal or page shows.

Documents are checked when they are read (schemas/common.xsd has the same two forms). The writers here make a text of a
machine or a batch system fit for a document.
"""

from __future__ import annotations

import json
import re
from typing import Final

IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+\-]{0,63}(@[A-Za-z0-9][A-Za-z0-9.\-]{0,127})?")
"""An identifier, or a party's name with its domain; no shell or language reads anything else into one."""

LINE_MAX: Final = 300
"""Characters of a short line."""

_LINE_END: Final = re.compile("\r\n|[\t\n\r\x0b\x0c\x85\u2028\u2029]")
_HIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
"""Control characters, line ends, marks that change the direction of text or have no width, and no characters."""


def is_printable(text: str) -> bool:
    """Return whether a text is one line without hidden characters."""
    return _HIDDEN.search(text) is None


def printable(text: str) -> str:
    """Return a text as one line without hidden characters: a space for a line end, `?` for any other."""
    return text if is_printable(text) else _HIDDEN.sub("?", _LINE_END.sub(" ", text))


def one_line(text: str, limit: int = LINE_MAX) -> str:
    """Return a text as one short line: printable, with single spaces, cut at a number of characters."""
    return printable(" ".join(text[: 10 * limit].split()))[:limit]


def visible(text: str) -> str:
    r"""Return a text for a terminal: every hidden character but tabs and line feeds as JSON writes it (`\u001b`).

    So JSON stays the same JSON.
    """
    return _HIDDEN.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    return character if character in "\t\n" else json.dumps(character)[1:-1].replace("\x7f", "\\u007f")
