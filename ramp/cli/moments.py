"""Durations and moments as people type them: `90min`, `1h30min`, `01:30:00`, `+5min`, `now`, ISO 8601."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Duration, Instant, from_iso

_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]+)\s*")
_CLOCK: Final = re.compile(r"(?:([0-9]{1,4})-)?([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9]))?")

DURATION_HELP: Final = "such as 90s, 45min, 1h30min, 2d, or 01:30:00"
MOMENT_HELP: Final = "such as +5min, now, 2026-11-21T08:30, or 2026-11-21T08:30:00+01:00"


def parse_duration(text: str) -> Duration:
    """Read a duration; a bare number is seconds, `H:MM[:SS]` and `D-H:MM:SS` are Slurm's.

    Returns:
        Microseconds.

    Raises:
        ValueError: if it is none.
    """
    cleaned = text.strip().lower()
    if re.fullmatch(r"[0-9]{1,9}", cleaned):
        return int(cleaned) * SECOND
    clock = _CLOCK.fullmatch(cleaned)
    if clock is not None:
        days, hours, minutes, left = (int(part or 0) for part in clock.groups())
        return days * DAY + hours * HOUR + minutes * MINUTE + left * SECOND
    total, position = 0, 0
    while position < len(cleaned):
        part = _PART.match(cleaned, position)
        if part is None or part[2] not in _UNITS:
            raise ValueError(f"{text!r} is no duration; right would be {DURATION_HELP}")
        total += round(float(part[1]) * _UNITS[part[2]])
        position = part.end()
    if position == 0:
        raise ValueError(f"an empty text is no duration; right would be {DURATION_HELP}")
    return total


def parse_moment(text: str, now: Instant) -> Instant:
    """Read a moment; without a zone it is UTC, `+` counts from `now`.

    Raises:
        ValueError: if it is none.
    """
    cleaned = text.strip()
    if cleaned.lower() == "now":
        return now
    if cleaned.startswith("+"):
        return now + parse_duration(cleaned[1:])
    try:
        return from_iso(cleaned)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is no moment; right would be {MOMENT_HELP}") from error


def whole_seconds_up(duration: int) -> int:
    """Round an instant or a duration up to whole seconds, which is all that RFQL's documents need to carry."""
    return -(-duration // SECOND) * SECOND


class DurationType(click.ParamType[Duration]):
    """A duration on the command line, in microseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        """Read it; durations of nothing are refused."""
        if isinstance(value, int):
            return value
        try:
            duration = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if duration <= 0:
            self.fail(f"{value!r} is no time at all; right would be {DURATION_HELP}", param, ctx)
        return duration


class MomentType(click.ParamType[Instant]):
    """A moment on the command line: instant in microseconds."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Instant:
        """Read it against the present."""
        from ramp.runtime.clock import SystemClock

        if isinstance(value, int):
            return value
        try:
            return parse_moment(value, SystemClock().now())
        except ValueError as error:
            self.fail(str(error), param, ctx)
