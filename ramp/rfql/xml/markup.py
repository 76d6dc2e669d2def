"""Write XML as text: escaping, and the lexical forms of instants, durations and numbers.

Text is several times faster than a tree, and a call for proposals reaches every resource in every round. Reading
always uses the parser and the schema.
"""

from __future__ import annotations

import re
from typing import Final

from ramp.errors import DocumentError
from ramp.model import instant
from ramp.model.instant import DAY, DURATION_END, INSTANT_END, SECOND, Duration, Instant
from ramp.text import printable

SENTENCE_CHARACTERS_MAX: Final = 4000
"""Longest sentence for people, as in the type Sentence of schemas/common.xsd."""

VALUE_SHOWN_MAX: Final = 80
"""Characters of a value that a message quotes."""

_SPECIAL: Final = re.compile("[&<>\"'\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
FORBIDDEN: Final = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff\\ufffe\\uffff]")
"""Characters that XML 1.0 forbids (production [2] Char): a server closes the stream of a client that sends one."""

_ZONE: Final = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_DATE: Final = re.compile(r"\s*(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})" + _ZONE + r"\s*")
_TIME: Final = re.compile(r"\s*(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)" + _ZONE + r"\s*")
_UTC: Final = ("Z", "+00:00", "-00:00")
_MIDNIGHT: Final = re.compile(r"24:00:00(\.0+)?")
_DURATION: Final = re.compile(r"(-?)PT([0-9]{1,10})(?:\.([0-9]{1,6}))?S")


def _escaped(value: str) -> str:
    bad = FORBIDDEN.search(value)
    if bad is not None:
        raise DocumentError(f"text contains U+{ord(bad.group()):04X}, which XML cannot carry: {value[:60]!r}")
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")


def escape_text(value: str) -> str:
    """Escape element content, so that it reads back unchanged; `DocumentError` for characters that XML cannot carry."""
    return _escaped(value) if _SPECIAL.search(value) is not None else value


def escape_attribute(value: str) -> str:
    """Escape an attribute's value for double quotes; tabs and line ends survive the parser's normalisation.

    Raises:
        DocumentError: for characters that XML cannot carry.
    """
    if _SPECIAL.search(value) is None:
        return value
    return _escaped(value).replace('"', "&quot;").replace("\t", "&#9;").replace("\n", "&#10;")


def escape_sentence(value: str) -> str:
    """Escape a sentence for an attribute, as one line of printable characters, cut to the maximum length.

    It may quote the output of a batch system, and an escape sequence in that must not lose the message.
    """
    if len(value) > SENTENCE_CHARACTERS_MAX:
        value = value[: SENTENCE_CHARACTERS_MAX - 1] + "…"
    return escape_attribute(printable(value))


def shown(value: str) -> str:
    """Quote a value in a message; a long one is cut, because it may be a whole document."""
    return repr(value) if len(value) <= VALUE_SHOWN_MAX else f"{value[:VALUE_SHOWN_MAX]!r}..."


def write_instant(moment: Instant) -> str:
    """Write an instant, as ISO 8601 in UTC; `DocumentError` if it is out of range."""
    if not 0 <= moment < INSTANT_END:
        raise DocumentError("time out of range: expected the years 1970 to 9000")
    return instant.iso(moment)


def read_instant(text: str) -> Instant:
    """Read the text of `write_instant`.

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
    """Write a duration as xs:duration in seconds: `PT30S`, `PT0.25S`; `DocumentError` if it is out of range."""
    if abs(duration) >= DURATION_END:
        raise DocumentError("duration out of range: expected less than 317 years")
    sign = "-" if duration < 0 else ""
    whole, fraction = divmod(abs(duration), SECOND)
    if fraction:
        return f"{sign}PT{whole}.{fraction:06d}".rstrip("0") + "S"
    return f"{sign}PT{whole}S"


def read_duration(text: str) -> Duration:
    """Read the text of `write_duration`; `ValueError` if the text is no such duration."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid duration: got {text!r}, expected for example PT30S")
    sign, whole, fraction = match.groups()
    duration = int(whole) * SECOND + int((fraction or "0").ljust(6, "0"))
    return -duration if sign else duration


# RFQL's split moments: an xs:date and an xs:time make an instant; without a zone they are UTC


def split_moment(moment: Instant) -> tuple[str, str]:
    """Write an instant as date and time: `2026-11-21` and `08:30:00Z`."""
    date, _, time = instant.iso(moment).partition("T")
    return date, time


def join_moment(date: str, time: str) -> Instant:
    """Read a date and a time as one instant.

    A zone may be in either; if both have one they must agree. `24:00:00` is the midnight that ends the day.

    Args:
        date: an xs:date.
        time: an xs:time; digits below the microsecond are cut off.

    Raises:
        ValueError: in plain words, if the two make no instant.
    """
    day, clock = _DATE.fullmatch(date), _TIME.fullmatch(time)
    if day is None:
        raise ValueError(f"invalid date: got {shown(date)}, expected a date such as 2026-11-21")
    if clock is None:
        raise ValueError(f"invalid time: got {shown(time)}, expected a time such as 08:30:00")
    zones = {"Z" if zone in _UTC else zone for zone in (day["zone"], clock["zone"]) if zone}
    if len(zones) > 1:
        raise ValueError(f"the date's zone {day['zone']} and the time's zone {clock['zone']} differ")
    ends_day = _MIDNIGHT.fullmatch(clock["clock"]) is not None
    if clock["clock"].startswith("24") and not ends_day:
        raise ValueError(f"invalid time: got {time!r}, expected hour 24 only in 24:00:00 (midnight)")
    at = "00:00:00" if ends_day else clock["clock"]
    try:
        found = instant.from_iso(f"{day['day']}T{at}{zones.pop() if zones else 'Z'}") + (DAY if ends_day else 0)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"invalid date and time: got {date.strip()} {time.strip()}: {error}") from error
    if not 0 <= found < INSTANT_END:
        raise ValueError(f"date out of range: got {date.strip()} {time.strip()}, expected 1970 to 9000")
    return found
