"""Durations and moments as people write them: `90min`, `01:30:00`, `+5min`, `-1h`, `tomorrow 08:00`, ISO 8601.

A library for dates in all languages (dateparser) was looked at and left: it brings four packages, guesses where two
readings are possible, and does not know Slurm's times.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Duration, Instant, from_datetime, from_iso

_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * DAY),
}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]+)\s*")
_CLOCK: Final = re.compile(r"(?:([0-9]{1,4})-)?([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9]))?")
_DAYS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME_OF_DAY: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?z?")

DURATION_HELP: Final = "such as 90s, 45min, 1h30min, 2d, or 01:30:00"
MOMENT_HELP: Final = "such as now, +5min, -1h, 18:00, tomorrow 08:00, yesterday, 2026-11-21T08:30, or that with +01:00"


def parse_duration(text: str) -> Duration:
    """Read a duration; a bare number is seconds, `H:MM[:SS]` and `D-H:MM:SS` are Slurm's.

    Returns:
        Microseconds.

    Raises:
        ValueError: if the text is not a time.
    """
    cleaned = text.strip().lower()
    if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", cleaned):
        return round(float(cleaned) * SECOND)
    clock = _CLOCK.fullmatch(cleaned)
    if clock is not None:
        days, hours, minutes, left = (int(part or 0) for part in clock.groups())
        return days * DAY + hours * HOUR + minutes * MINUTE + left * SECOND
    total, position = 0, 0
    while position < len(cleaned):
        part = _PART.match(cleaned, position)
        if part is None or part[2] not in _UNITS:
            raise ValueError(f"invalid duration: got {text!r}, expected a length {DURATION_HELP}")
        total += round(float(part[1]) * _UNITS[part[2]])
        position = part.end()
    if position == 0:
        raise ValueError(f"invalid duration: got an empty text, expected a length {DURATION_HELP}")
    return total


def parse_moment(text: str, now: Instant) -> Instant:
    """Read a moment, in UTC unless it has a zone; `+` and `-` count from `now`, days and times of day are near it.

    `yesterday` is its beginning, `18:00` the next time that the clock shows it, `monday` the next Monday after today.

    Raises:
        ValueError: if the text is not a time.
    """
    cleaned = " ".join(text.lower().split())
    if cleaned == "now":
        return now
    try:
        if cleaned[:1] in ("+", "-"):
            length = parse_duration(cleaned[1:])
            return now + length if cleaned[0] == "+" else now - length
        named = _named_moment(cleaned, now)
        return from_iso(text.strip()) if named is None else named
    except (ValueError, OverflowError) as error:
        raise ValueError(f"invalid time: got {text!r}, expected a time {MOMENT_HELP}") from error


def _named_moment(text: str, now: Instant) -> Instant | None:
    today = now - now % DAY
    name, _, rest = text.partition(" ")
    rest = rest.removeprefix("at ")
    if name in _DAYS:
        day = today + _DAYS[name] * DAY
    elif name in _WEEKDAYS:
        ahead = (_WEEKDAYS.index(name) - _weekday(today) - 1) % 7 + 1
        day = today + ahead * DAY
    else:
        time_of_day = _time_of_day(text)
        if time_of_day is None:
            return None
        return today + time_of_day if today + time_of_day > now else today + DAY + time_of_day
    if not rest:
        return day
    time_of_day = _time_of_day(rest)
    if time_of_day is None:
        raise ValueError(rest)
    return day + time_of_day


def _weekday(midnight: Instant) -> int:
    return (midnight // DAY + 3) % 7  # 1970-01-01 was a Thursday


def _time_of_day(text: str) -> Duration | None:
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        return None
    hours, minutes, left = (int(part or 0) for part in found.groups())
    return hours * HOUR + minutes * MINUTE + left * SECOND


def duration_of(value: str | timedelta, name: str) -> Duration:
    """Read a duration given as text or `timedelta`; in microseconds. Raises `ValueError` naming the argument."""
    length = value // timedelta(microseconds=1) if isinstance(value, timedelta) else parse_duration(value)
    if length < 0:
        raise ValueError(f"{name} must not be negative: got {value}, expected a length {DURATION_HELP}")
    return length


def moment_of(value: str | datetime, now: Instant) -> Instant:
    """Read a moment given as text or aware `datetime`; raises `ValueError` if it is invalid."""
    return from_datetime(value) if isinstance(value, datetime) else parse_moment(value, now)


def whole_seconds_up(duration: int) -> int:
    """Round an instant or a duration up to whole seconds, which is all that RFQL's documents need to carry."""
    return -(-duration // SECOND) * SECOND
