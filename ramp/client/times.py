"""Durations and moments as people write them: `90min`, `01:30:00`, `+5min`, `-1h`, `tomorrow 08:00`, ISO 8601.

A library for dates in all languages (dateparser) was looked at and left: it brings four packages, guesses where two
readings are possible, and does not know Slurm's times.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final

from ramp.model.instant import (
    DAY,
    DURATION_END,
    HOUR,
    INSTANT_END,
    MINUTE,
    SECOND,
    Duration,
    Instant,
    from_datetime,
    to_datetime,
)

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
_TIME_OF_DAY: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?(z)?")

DURATION_HELP: Final = "such as 90s, 45min, 1h30min, 2d, or 01:30:00"
MOMENT_HELP: Final = "such as now, +5min, -1h, 18:00, tomorrow 08:00, yesterday, 2026-11-21T08:30, or that with +01:00"


def duration_of(value: str | timedelta, *, zero: bool = True) -> Duration:
    """Read a duration; of texts a bare number is seconds, `H:MM[:SS]` and `D-H:MM:SS` are Slurm's.

    Returns:
        Microseconds.

    Raises:
        ValueError: if the text is not a time, or it is out of range; `zero` allows 0.
    """
    length = value // timedelta(microseconds=1) if isinstance(value, timedelta) else _length(value)
    if not (0 if zero else 1) <= length < DURATION_END:
        least = "0 or more" if zero else "above 0"
        raise ValueError(f"must be {least} and below 317 years: got {str(value)!r}, expected a length {DURATION_HELP}")
    return length


def _length(text: str) -> Duration:
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


def moment_of(value: str | datetime, now: Instant, zone: tzinfo | None = None) -> Instant:
    """Read a moment, given as an aware `datetime` or as text; `+` and `-` count from `now`.

    A text is in `zone` (default: this computer's) unless it names one. `yesterday` is its beginning, `18:00` the next
    time that the clock shows it, `monday` the next Monday after today.

    Raises:
        ValueError: if it is not a time, or out of range.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"no time zone: got {value.isoformat()!r}, expected an aware datetime or a text")
        return _in_range(from_datetime(value), value)
    cleaned = " ".join(value.lower().split())
    moment, named = now, None
    try:
        if cleaned[:1] in ("+", "-"):
            length = _length(cleaned[1:])
            moment = now + length if cleaned[0] == "+" else now - length
        elif cleaned != "now":
            named = _named_moment(cleaned, now, zone) or datetime.fromisoformat(value.strip())
    except (ValueError, OverflowError) as error:
        raise ValueError(f"invalid time: got {value!r}, expected a time {MOMENT_HELP}") from error
    if named is not None:
        try:  # without a zone, `astimezone` takes the computer's, with its summer time
            moment = from_datetime(named.replace(tzinfo=named.tzinfo or zone).astimezone())
        except (ValueError, OverflowError):  # the first or last days of the calendar
            moment = INSTANT_END
    return _in_range(moment, value)


def _in_range(moment: Instant, given: object) -> Instant:
    if not 0 <= moment < INSTANT_END:
        raise ValueError(f"time out of range: got {str(given)!r}, expected a time from 1970 to 8999")
    return moment


def _named_moment(text: str, now: Instant, zone: tzinfo | None) -> datetime | None:
    """Return the moment that a day, a time of day or both name; None for other texts."""
    name, _, rest = text.partition(" ")
    is_day = name in _DAYS or name in _WEEKDAYS
    found = _TIME_OF_DAY.fullmatch(rest.removeprefix("at ") if is_day else text)
    if found is None and not (is_day and not rest):
        return None
    hour, minute, second = (int(part or 0) for part in found.groups()[:3]) if found else (0, 0, 0)
    clock = time(hour, minute, second, tzinfo=UTC if found and found[4] else zone)
    here = to_datetime(now).astimezone(clock.tzinfo)

    def after(days: int) -> datetime:
        return datetime.combine(here.date() + timedelta(days), clock).astimezone()

    if name in _DAYS:
        return after(_DAYS[name])
    if is_day:
        return after((_WEEKDAYS.index(name) - here.weekday() - 1) % 7 + 1)
    return after(0) if after(0) > here else after(1)


def whole_seconds_up(duration: int) -> int:
    """Round an instant or a duration up to whole seconds, which is all that RFQL's documents need to carry."""
    return -(-duration // SECOND) * SECOND
