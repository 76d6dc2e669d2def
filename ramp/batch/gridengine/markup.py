"""Mend and parse the XML of Grid Engine's commands, which is often invalid.

qrstat(1) does not escape account names (`x<&"y`), qstat(1) writes `%lt;` for `<`, and both print bytes that are not
characters. Tasks of jobs that qmaster found at its start are elements called `<JATASK:       1.>`. But each element
with text has a line of its own, so the text between its tags is escaped before parsing, and no name of a job can open
an element. The safe parser then refuses document types and entities, and limits size and depth.
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
        output: of the command.
        root: name of the outermost element.

    Raises:
        ValueError: if it is no XML even with its texts mended, is too long or too deep, or has another root.
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
    """Escape the text between the tags of one line."""
    line = _NO_CHARACTER.sub("\ufffd", line)
    leaf = _LEAF.match(line)
    if leaf is None:
        return _TASK.sub(r"\1>", line)
    begin, _, text, end = leaf.groups()
    text = _LONE_AMPERSAND.sub("&amp;", text.replace("%lt;", "&lt;").replace("%gt;", "&gt;"))
    return f"{begin}{text.replace('<', '&lt;').replace('>', '&gt;')}{end}"


def text_of(element: Element, name: str, default: str | None = None) -> str:
    """The text of a child; `ValueError` if there is no such child and no default."""
    found = element.findtext(name)
    if found is None:
        if default is None:
            raise ValueError(f"element {element.tag!r} has no {name!r}")
        return default
    return found.strip()


def number_of(text: str, what: str, most: int = 10**9) -> int:
    """Read a whole number from 0 on; `ValueError` if it is no whole number, or above the maximum."""
    if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > most:
        raise ValueError(f"invalid {what}: got {text!r:.60}, expected a whole number up to {most}")
    return int(text)


def load_of(text: str) -> float | None:
    """Read a load average; None if it is unknown or no number from 0 on."""
    try:
        load = float(text)
    except ValueError:
        return None
    return load if 0 <= load < 1e9 else None


def moment_of(text: str, what: str) -> Instant:
    """Read a date and time without a zone as UTC, in which the commands run.

    Raises:
        ValueError: if the text is no date and time.
    """
    try:
        return from_iso(text)
    except ValueError as error:
        raise ValueError(f"invalid {what}: got {text!r:.60}, expected a time such as 2026-11-21T23:23:23") from error


def limit_of(text: str) -> Duration | None:
    """Read a time limit given as seconds or `h:m:s`; None for INFINITY and other text."""
    parts = text.strip().split(":")
    if not 1 <= len(parts) <= 3 or not all(re.fullmatch(r"[0-9]{0,9}(\.0+)?", part) for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part.partition(".")[0] or 0)
    return total * 1_000_000 or None
