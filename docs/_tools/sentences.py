"""What docstrings say of each attribute: `name: sentence` lines of the section Attributes."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def attribute_sentences(thing: Any) -> dict[str, str]:
    """The sentences of a class's docstring by attribute."""
    text = inspect.getdoc(thing) or ""
    _, _, section = text.partition("Attributes:\n")
    return {match[1]: sentence(match[2]) for match in _ATTRIBUTE.finditer(section)}


def sentence(text: str) -> str:
    """A docstring's words in one line, with a capital and a full stop."""
    words = " ".join(text.split())
    first = words[:1] if words.startswith("`") else words[:1].upper()
    return first + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def first_paragraph(thing: Any) -> str:
    """The first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", r"\|").replace("\n", " ")
