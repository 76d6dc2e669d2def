"""Slurm's hostlists on machines with coordinates: `bgl[000x733]`, `bgl[000x133,400x533]`, `linux[0-3]`.

Inside a bracket, `LOWxHIGH` is the box between two corners (one base-36 digit a dimension, both corners inclusive),
`LOW-HIGH` a range of decimal numbers, and anything else a single suffix. Compressing follows the later Slurm's rule:
boxes are taken out of the set one by one, each grown from the first remaining cell along the last dimension first. The
result is exact and disjoint, though not always the shortest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product

from ramp.errors import MachineError
from simulation.machines.grid import Grid

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Digits of a coordinate; Slurm numbers up to 36 units a dimension this way."""


def digits_of(coordinates: Sequence[int]) -> str:
    """Return the digits of a unit's coordinates.

    Raises:
        MachineError: a coordinate has no digit.
    """
    if any(not 0 <= coordinate < len(DIGITS) for coordinate in coordinates):
        raise MachineError(f"coordinates must be 0 to {len(DIGITS) - 1} to form a name, got {list(coordinates)}")
    return "".join([DIGITS[coordinate] for coordinate in coordinates])


def unit_name(prefix: str, coordinates: Sequence[int]) -> str:
    """Return the name of the unit at the coordinates, for example bgl012."""
    return prefix + digits_of(coordinates)


HOSTS_MAX = 1_000_000
"""Names one list may expand to; above, the list is more likely a slip than a machine."""
DEFAULT_DIMENSIONS = 3
"""Digits of a name that count as coordinates when compressing: X, Y and Z of Blue Gene/L."""

_BOX = re.compile(r"([0-9A-Z]+)x([0-9A-Z]+)")
_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_DASHED_BOX = re.compile(r"([0-9A-Z]+)x-([0-9A-Z]+)")
_MISPRINT = (
    "the paper of 2004 on Slurm for Blue Gene/L prints bgl[000x-011,700x711], a misprint that Slurm refuses as well"
)
_SINGLE = re.compile(r"[0-9A-Z]+")
_PREFIX = re.compile(r"[a-z0-9._-]*")


def expand(text: str, *, prefix: str | None = None, dimensions: int | None = None) -> list[str]:
    """Expand a hostlist to its names in the written order, duplicates included.

    Args:
        text: the list.
        prefix: if given, every name must be this prefix and one coordinate for each dimension.
        dimensions: coordinates of a name; only needed with `prefix` (3 by default).

    Raises:
        MachineError: malformed; the message shows where.
    """
    names: list[str] = []
    for start, end in _split(text, 0, len(text)):
        names.extend(_expand_item(text, start, end))
        if len(names) > HOSTS_MAX:
            _refuse(text, start, end, f"more than {HOSTS_MAX} names")
        if prefix is not None:
            _check_names(text, start, end, names, prefix, dimensions or DEFAULT_DIMENSIONS)
    return names


def expand_coordinates(text: str, prefix: str, dimensions: int) -> list[tuple[int, ...]]:
    """Expand a hostlist to the coordinates of its units on a machine with that prefix and number of dimensions.

    Raises:
        MachineError: malformed, or a name of another machine.
    """
    names = expand(text, prefix=prefix, dimensions=dimensions)
    return [tuple(DIGITS.index(digit) for digit in name[len(prefix) :]) for name in names]


def expand_units(text: str, prefix: str, grid: Grid) -> int:
    """Expand a hostlist to the bit set of its units; the empty text has none.

    Raises:
        MachineError: malformed, or a name of another machine.
    """
    units = 0
    for coordinates in expand_coordinates(text, prefix, len(grid.extents)) if text else ():
        units |= 1 << grid.unit(coordinates)
    return units


def is_prefix(text: str) -> bool:
    """Return whether names of a host list may begin with this prefix."""
    return _PREFIX.fullmatch(text) is not None


def compress(names: Iterable[str], *, dimensions: int = DEFAULT_DIMENSIONS) -> str:
    """Compress names to the form that later Slurm prints; duplicates are removed.

    Args:
        names: single names (no brackets).
        dimensions: names whose suffix has exactly this many base-36 digits are written as boxes (1 = none are).
    """
    boxes: dict[str, set[tuple[int, ...]]] = {}
    numbers: dict[tuple[str, int], set[int]] = {}
    plain: set[str] = set()
    for name in names:
        stem = name.rstrip(DIGITS)
        suffix = name[len(stem) :]
        digits = re.search(r"[0-9]{0,18}$", name)
        number = digits.group() if digits is not None else ""
        if dimensions > 1 and len(suffix) == dimensions:
            boxes.setdefault(stem, set()).add(tuple(DIGITS.index(digit) for digit in suffix))
        elif number:
            # a number with leading zeros keeps its width; the others run on from 9 to 10
            width = len(number) if number[0] == "0" and len(number) > 1 else 0
            numbers.setdefault((name[: len(name) - len(number)], width), set()).add(int(number))
        else:
            plain.add(name)
    parts = [(stem, compress_coordinates(stem, cells)) for stem, cells in boxes.items()]
    parts += [(stem, _compress_numbers(stem, width, values)) for (stem, width), values in numbers.items()]
    parts += [(name, name) for name in plain]
    return ",".join(text for _, text in sorted(parts))


def compress_coordinates(prefix: str, cells: Iterable[Sequence[int]]) -> str:
    """Return the hostlist of the units at the coordinates, all with one prefix."""
    items = [
        digits_of(low) if low == high else f"{digits_of(low)}x{digits_of(high)}"
        for low, high in cover(tuple(cell) for cell in cells)
    ]
    if len(items) == 1 and "x" not in items[0]:
        return prefix + items[0]
    return f"{prefix}[{','.join(items)}]" if items else ""


def cover(cells: Iterable[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cover the cells exactly with disjoint boxes (two corners each), grown from the first cell, last axis first."""
    remaining = set(cells)
    boxes = []
    for low in sorted(remaining):
        if low not in remaining:
            continue
        high = list(low)
        for axis in reversed(range(len(low))):
            while True:
                sides = [range(low[other], high[other] + 1) for other in range(len(low))]
                sides[axis] = range(high[axis] + 1, high[axis] + 2)
                if not remaining.issuperset(product(*sides)):
                    break
                high[axis] += 1
        remaining.difference_update(product(*(range(first, last + 1) for first, last in zip(low, high, strict=True))))
        boxes.append((low, tuple(high)))
    return boxes


def _compress_numbers(stem: str, width: int, values: set[int]) -> str:
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][1] + 1 and len(str(value).zfill(width)) >= width:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    items = [
        str(low).zfill(width) if low == high else f"{str(low).zfill(width)}-{str(high).zfill(width)}"
        for low, high in runs
    ]
    return stem + items[0] if len(items) == 1 and "-" not in items[0] else f"{stem}[{','.join(items)}]"


def _split(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return places of the list's items: cut at commas outside brackets, blanks around an item left out."""
    items = []
    opened = -1
    first = start
    for position in range(start, end):
        character = text[position]
        if character == "[":
            if opened >= 0:
                _refuse(text, position, position + 1, "bracket inside a bracket")
            opened = position
        elif character == "]":
            if opened < 0:
                _refuse(text, position, position + 1, "closing bracket without an opening bracket")
            opened = -1
        elif character == "," and opened < 0:
            items.append((first, position))
            first = position + 1
    if opened >= 0:
        _refuse(text, opened, opened + 1, "bracket is not closed")
    items.append((first, end))
    trimmed = []
    for low, high in items:
        item = text[low:high]
        if not item.strip():
            _refuse(text, low, max(high, low + 1), "missing name")
        trimmed.append((low + len(item) - len(item.lstrip()), high - len(item) + len(item.rstrip())))
    return trimmed


def _expand_item(text: str, start: int, end: int) -> list[str]:
    opening = text.find("[", start, end)
    if opening < 0:
        stem_end = start + len(text[start:end].rstrip(DIGITS))
        _check_prefix(text, start, stem_end)
        return [text[start:end]]
    _check_prefix(text, start, opening)
    if text[end - 1] != "]":
        _refuse(text, text.index("]", opening) + 1, end, "text after the bracket; expected a comma or the end")
    if text.find("[", opening + 1, end) >= 0:
        second = text.index("[", opening + 1)
        _refuse(text, second, second + 1, "second bracket in a name; expected one")
    names: list[str] = []
    position = opening + 1
    for part in text[opening + 1 : end - 1].split(","):
        names.extend(text[start:opening] + suffix for suffix in _expand_part(text, position, part))
        position += len(part) + 1
    return names


def _expand_part(text: str, position: int, part: str) -> list[str]:
    end = position + len(part)
    box = _BOX.fullmatch(part)
    if box is not None:
        return _expand_box(text, position, box.group(1), box.group(2))
    numbers = _RANGE.fullmatch(part)
    if numbers is not None:
        low, high = numbers.groups()
        if len(high) < len(low) or int(high) < int(low):
            _refuse(text, position, end, f"the range ends at {high} before it starts at {low}")
        if int(high) - int(low) >= HOSTS_MAX:
            _refuse(text, position, end, f"more than {HOSTS_MAX} names")
        return [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    dashed = _DASHED_BOX.fullmatch(part)
    if dashed is not None:
        low, high = dashed.groups()
        dash = position + len(low) + 1
        reason = f"dash in a box; write {low}x{high} ({_MISPRINT})"
        _refuse(text, dash, dash + 1, reason)
    if _SINGLE.fullmatch(part) is None:
        wrong = next((index for index, character in enumerate(part) if character not in DIGITS + "x-"), None)
        if wrong is None:
            wrong = part.find("-") if "x" in part and "-" in part else 0
            _refuse(text, position + wrong, max(position + wrong + 1, end if not wrong else 0),
                    "expected a suffix, a range such as 0-3 or a box such as 000x733")  # fmt: skip
        _refuse(text, position + wrong, position + wrong + 1, "expected digits 0-9 or upper-case letters A-Z here")
    return [part]


def _expand_box(text: str, position: int, low: str, high: str) -> list[str]:
    end = position + len(low) + 1 + len(high)
    if len(low) != len(high):
        _refuse(text, position, end, f"corners {low} and {high} must have the same number of digits")
    sides = []
    count = 1
    for first, last in zip(low, high, strict=True):
        if first > last:
            _refuse(text, position, end, f"corner {high} is below corner {low}; write the lower corner first")
        sides.append(DIGITS[DIGITS.index(first) : DIGITS.index(last) + 1])
        count *= len(sides[-1])
    if count > HOSTS_MAX:
        _refuse(text, position, end, f"more than {HOSTS_MAX} names")
    return ["".join(digits) for digits in product(*sides)]


def _check_prefix(text: str, start: int, end: int) -> None:
    match = _PREFIX.match(text, start, end)
    reached = match.end() if match is not None else start
    if reached < end:
        _refuse(text, reached, reached + 1, "invalid prefix; expected lower-case letters, digits, '.', '_' and '-'")


def _check_names(text: str, start: int, end: int, names: list[str], prefix: str, dimensions: int) -> None:
    for name in names:
        suffix = name.removeprefix(prefix)
        if not name.startswith(prefix) or len(suffix) != dimensions or suffix.strip(DIGITS):
            example = prefix + "0" * dimensions
            _refuse(
                text,
                start,
                end,
                f"invalid name {name}; expected {prefix!r} and {dimensions} digits 0-9, A-Z, as in {example}",
            )


def _refuse(text: str, start: int, end: int, reason: str) -> None:
    marks = " " * start + "^" * max(1, end - start)
    raise MachineError(f"host list: {reason}\n  {text}\n  {marks}")
