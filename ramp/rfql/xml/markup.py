"""XML written as text: escaping, and the lexical forms of instants, durations and numbers.

Documents are written as text rather than through a tree, because that is several times faster and a call for
proposals goes to every resource in every round. Reading always goes through the parser and the schema.
"""

from __future__ import annotations

import re
from typing import Final

from ramp.errors import MeaningViolation
from ramp.model import instant
from ramp.model.instant import DAY, SECOND, Duration, Instant

SENTENCE_CHARACTERS_MAX: Final = 4000
"""Longest sentence for people, as the type Sentence of schemas/common.xsd has it."""

VALUE_SHOWN_MAX: Final = 80
"""Characters of a value that a message quotes."""

_SPECIAL: Final = re.compile("[&<>\"'\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_FORBIDDEN: Final = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff\\ufffe\\uffff]")
_DURATION: Final = re.compile(r"(-?)PT([0-9]{1,10})(?:\.([0-9]{1,6}))?S")

DURATION_END: Final[Duration] = 10**10 * SECOND
"""No document holds a duration as long as this, 317 years."""

INSTANT_END: Final[Instant] = 9000 * 365 * DAY - 1970 * 365 * DAY + 1705 * DAY
"""2000-01-01 plus 7000 years: any instant of a document and two of its durations make a moment in the calendar."""


def _escaped(value: str) -> str:
    bad = _FORBIDDEN.search(value)
    if bad is not None:
        raise MeaningViolation(f"text contains U+{ord(bad.group()):04X}, which XML cannot carry: {value[:60]!r}")
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def escape_text(value: str) -> str:
    """Escape element content, so that it reads back unchanged.

    Raises:
        MeaningViolation: for characters that XML cannot carry.
    """
    return _escaped(value) if _SPECIAL.search(value) is not None else value


def escape_attribute(value: str) -> str:
    """Escape an attribute's value for double quotes; tabs and line ends survive the parser's normalisation.

    Raises:
        MeaningViolation: for characters that XML cannot carry.
    """
    if _SPECIAL.search(value) is None:
        return value
    return _escaped(value).replace('"', "&quot;").replace("\t", "&#9;").replace("\n", "&#10;")


def escape_sentence(value: str) -> str:
    """Escape a sentence for people for an attribute: what XML cannot carry is replaced, what is too long is cut.

    Such a sentence may quote the output of a batch system; a message must not be lost over an escape sequence in it.
    """
    if len(value) > SENTENCE_CHARACTERS_MAX:
        value = value[: SENTENCE_CHARACTERS_MAX - 1] + "…"
    return escape_attribute(_FORBIDDEN.sub("\ufffd", value))


def shown(value: str) -> str:
    """A value as it is quoted in a message: a long one is cut, it may be a whole document."""
    return repr(value) if len(value) <= VALUE_SHOWN_MAX else f"{value[:VALUE_SHOWN_MAX]!r}..."


def write_instant(moment: Instant) -> str:
    """Write an instant, as ISO 8601 in UTC.

    Raises:
        MeaningViolation: if no document holds it.
    """
    if not 0 <= moment < INSTANT_END:
        raise MeaningViolation(f"instant {moment} is not between 1970 and 9000")
    return instant.iso(moment)


def read_instant(text: str) -> Instant:
    """Read what `write_instant` wrote.

    Raises:
        ValueError: if the text is no moment between the years 1970 and 9000, so that adding a duration is always safe.
    """
    try:
        moment = instant.from_iso(text)
    except OverflowError as error:
        raise ValueError(f"invalid time: got {shown(text)}: {error}") from error
    if not 0 <= moment < INSTANT_END:
        raise ValueError(f"time out of range: got {shown(text)}, expected 1970 to 9000")
    return moment


def write_duration(duration: Duration) -> str:
    """Write a duration as xs:duration in seconds: `PT30S`, `PT0.25S`.

    Raises:
        MeaningViolation: if no document holds it.
    """
    if abs(duration) >= DURATION_END:
        raise MeaningViolation(f"a duration of {duration} µs is not below 317 years")
    sign = "-" if duration < 0 else ""
    whole, fraction = divmod(abs(duration), SECOND)
    if fraction:
        return f"{sign}PT{whole}.{fraction:06d}".rstrip("0") + "S"
    return f"{sign}PT{whole}S"


def read_duration(text: str) -> Duration:
    """Read what `write_duration` wrote.

    Raises:
        ValueError: if the text is no such duration.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid duration: got {text!r}, expected for example PT30S")
    sign, whole, fraction = match.groups()
    duration = int(whole) * SECOND + int((fraction or "0").ljust(6, "0"))
    return -duration if sign else duration
