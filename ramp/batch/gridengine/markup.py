"""The XML of Grid Engine's commands, which is not always XML.

qrstat(1) writes account names as they are (`x<&"y`), qstat(1) writes `%lt;` for a `<`, and neither looks whether a byte
is a character; of jobs that qmaster found at its start, tasks are elements called `<JATASK:       1.>`. Each element
with text has a line of its own, though; so what is between its tags is made text before a parser sees it, and no
name of a job, whoever chose it, can open an element. Then it passes the safe parser: no document type, no entities, no
network, limits on size and depth.
"""

from __future__ import annotations

import re
from typing import Final

from ramp.errors import DocumentError
from ramp.model.instant import Duration, Instant, from_iso
from ramp.rfql.xml.parser import Element, parse_output

OUTPUT_BYTES_MAX: Final = 64_000_000
"""Longest answer that is read: some 80 000 jobs."""

_LEAF: Final = re.compile(r"^(\s*<([A-Za-z_][\w.-]*)(?: [^<>]*)?>)(.*)(</\2>\s*)$")
_LONE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)")
_NO_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TASK: Final = re.compile(r"^(\s*</?JATASK):[^<>]*>\s*$")
_HEADER: Final = re.compile(r"^\s*<\?xml[^>]*\?>")


def parse_answer(output: str, root: str) -> Element:
    """Read the XML of a command.

    Args:
        output: what it printed.
        root: name of the outermost element.

    Raises:
        ValueError: if it is no XML even with its texts mended, is too long or too deep, or of another name.
    """
    mended = "\n".join(_mended(line) for line in _HEADER.sub("", output).splitlines())
    try:
        element = parse_output(mended, OUTPUT_BYTES_MAX)
    except DocumentError as error:
        raise ValueError(error.reason) from error
    if element.tag != root:
        raise ValueError(f"wrong outermost element: got {element.tag!r:.60}, expected {root!r}")
    return element


def _mended(line: str) -> str:
    """One line, with what stands between its tags made plain text."""
    line = _NO_CHARACTER.sub("\ufffd", line)
    leaf = _LEAF.match(line)
    if leaf is None:
        return _TASK.sub(r"\1>", line)
    begin, _, text, end = leaf.groups()
    text = _LONE_AMPERSAND.sub("&amp;", text.replace("%lt;", "&lt;").replace("%gt;", "&gt;"))
    return f"{begin}{text.replace('<', '&lt;').replace('>', '&gt;')}{end}"


def text_of(element: Element, name: str, default: str | None = None) -> str:
    """The text of a child.

    Raises:
        ValueError: if there is no such child and no default.
    """
    found = element.findtext(name)
    if found is None:
        if default is None:
            raise ValueError(f"element {element.tag!r} has no {name!r}")
        return default
    return found.strip()


def number_of(text: str, what: str, most: int = 10**9) -> int:
    """A whole number from 0 on.

    Raises:
        ValueError: if it is none, or above the most.
    """
    if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > most:
        raise ValueError(f"invalid {what}: got {text!r:.60}, expected a whole number up to {most}")
    return int(text)


def load_of(text: str) -> float | None:
    """A load average, None where none is known or what stands there is no number from 0 on."""
    try:
        load = float(text)
    except ValueError:
        return None
    return load if 0 <= load < 1e9 else None


def moment_of(text: str, what: str) -> Instant:
    """A date and time as its XML writes them, without a zone: in UTC, which the commands are run in.

    Raises:
        ValueError: if it is none.
    """
    try:
        return from_iso(text)
    except ValueError as error:
        raise ValueError(f"invalid {what}: got {text!r:.60}, expected a time such as 2026-11-21T23:23:23") from error


def limit_of(text: str) -> Duration | None:
    """A limit of time as seconds or `h:m:s`; None for INFINITY and for what is no time."""
    parts = text.strip().split(":")
    if not 1 <= len(parts) <= 3 or not all(re.fullmatch(r"[0-9]{0,9}(\.0+)?", part) for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part.partition(".")[0] or 0)
    return total * 1_000_000 or None
