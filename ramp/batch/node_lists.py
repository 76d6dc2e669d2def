"""Lists of nodes as Slurm writes them (`n[01-04,7],login1`), and a slot's nodes as text.

slurm.conf(5), scontrol(1) "show hostlist". A name may have several brackets (`rack[1-2]n[0-3]`); as in Slurm, the last
one runs fastest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Final

from ramp.batch.system import Parts
from ramp.plugins.answers import PLACEMENT_MAX, TOKEN_MAX

NODES_MAX: Final = 1_000_000
"""Nodes of one list; more indicate an attack or a fault."""

_PIECE: Final = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]]*)\])?")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NUMBERED: Final = re.compile(r"(.*?)(\d{1,9})")


def expand(text: str, most: int = NODES_MAX) -> tuple[str, ...]:
    """Return the names of a list, in its order; empty for the empty text and for `(null)`.

    Raises:
        ValueError: if it is no list of nodes, or names more than `most`.
    """
    if text in {"", "(null)", "None"}:
        return ()
    found: list[str] = []
    for word in _words(text):
        found += _expanded(word, text, most)
        if len(found) > most:
            raise ValueError(f"more than {most} nodes in {text[:60]!r}")
    return tuple(found)


def compress(names: Iterable[str]) -> str:
    """Return the shortest list in which names that differ in their last number share a bracket; the order is kept."""
    groups: list[tuple[str, int, list[tuple[int, int]]]] = []  # prefix, width, ranges; no number: width -1
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            groups.append((name, -1, []))
            continue
        prefix, number = match[1], int(match[2])
        width = len(match[2]) if match[2].startswith("0") else 0
        previous = groups[-1] if groups else None
        if previous is None or previous[0] != prefix or previous[1] < 0 or not _fits(previous[1], width, match[2]):
            groups.append((prefix, width, [(number, number)]))
        elif previous[2][-1][1] == number - 1:
            previous[2][-1] = (previous[2][-1][0], number)
        else:
            previous[2].append((number, number))
    return ",".join(_written(*group) for group in groups)


def _fits(group_width: int, width: int, digits: str) -> bool:
    return group_width == width or (group_width > 0 and width == 0 and len(digits) == group_width)


def _written(prefix: str, width: int, ranges: list[tuple[int, int]]) -> str:
    if width < 0:
        return prefix
    texts = [f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}" for first, last in ranges]
    alone = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return prefix + (texts[0] if alone else f"[{','.join(texts)}]")


def _words(text: str) -> list[str]:
    words, depth, word = [], 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            words.append(word)
            word = ""
        else:
            word += letter
    if depth:
        raise ValueError(f"unclosed bracket in {text[:60]!r}")
    return [*words, word]


def _expanded(word: str, text: str, most: int) -> list[str]:
    pieces: list[list[str]] = []
    position = 0
    while position < len(word):
        match = _PIECE.match(word, position)
        if match is None or match.end() == position:
            raise ValueError(f"invalid list of nodes: {text[:60]!r}")
        pieces.append([match[1]])
        if match[2] is not None:
            pieces.append(_numbers(match[2], text, most))
        position = match.end()
    count = 1
    for piece in pieces:
        count *= len(piece)
    if not word or count > most:
        raise ValueError(f"invalid list of nodes: got {text[:60]!r}, expected at most {most} nodes")
    return ["".join(parts) for parts in itertools.product(*pieces)]


def _numbers(ranges: str, text: str, most: int) -> list[str]:
    found: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"invalid range of numbers {part[:20]!r} in {text[:60]!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= most:
            raise ValueError(f"invalid range of numbers {part[:20]!r} in {text[:60]!r}")
        width = len(match[1])
        found += [f"{number:0{width}}" for number in range(first, last + 1)]
    return found


def count_of(numbers: str) -> int:
    """Count the numbers of a list such as `0-3,7`; `ValueError` if it is no such list."""
    ranges = (part.partition("-") for part in numbers.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def placement_of(parts: Parts) -> str:
    """Return the nodes as a list in Slurm's form, or only their number if that is too long."""
    text = compress(name for name, _ in parts)
    return text if len(text) <= PLACEMENT_MAX else f"{len(parts)} nodes"


def token_of(parts: Parts) -> str:
    """Return the cores of each node as text: `8:n[1-3];4:n4`; empty if it is too long for a slot."""
    groups: list[tuple[int, list[str]]] = []
    for name, count in parts:
        if groups and groups[-1][0] == count:
            groups[-1][1].append(name)
        else:
            groups.append((count, [name]))
    text = ";".join(f"{count}:{compress(names)}" for count, names in groups)
    return text if len(text) <= TOKEN_MAX else ""


def parts_of(token: str) -> Parts:
    """Read the text of `token_of`.

    Raises:
        ValueError: if the text is invalid, names a node twice, or gives a node no cores.
    """
    parts: list[tuple[str, int]] = []
    for group in token.split(";"):
        count, colon, names = group.partition(":")
        if not colon or not count.isascii() or not count.isdigit() or int(count) < 1:
            raise ValueError(f"{token[:60]!r} does not name cores of nodes")
        parts += ((name, int(count)) for name in expand(names))
    if not parts or len({name for name, _ in parts}) < len(parts):
        raise ValueError(f"{token[:60]!r} does not name nodes once each")
    return tuple(parts)
