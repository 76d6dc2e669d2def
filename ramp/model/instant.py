"""Time as integers: an instant is microseconds since the Unix epoch (UTC), a duration is microseconds.

Integers make arithmetic exact and runs repeatable; aware datetimes appear only at the edges (documents, command line).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

Instant = int
"""Microseconds since 1970-01-01T00:00:00Z."""

Duration = int
"""Microseconds."""

MILLISECOND: Final[Duration] = 1_000
SECOND: Final[Duration] = 1_000_000
MINUTE: Final[Duration] = 60 * SECOND
HOUR: Final[Duration] = 3600 * SECOND
DAY: Final[Duration] = 24 * HOUR

DURATION_END: Final[Duration] = 10**10 * SECOND
"""Durations of requests and documents are shorter than this, 317 years."""

INSTANT_END: Final[Instant] = 9000 * 365 * DAY - 1970 * 365 * DAY + 1705 * DAY
"""2000-01-01 plus 7000 years: an instant and two durations of a document stay within the calendar."""

_STAMP: Final = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z\b")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def from_datetime(moment: datetime) -> Instant:
    """Convert an aware datetime to an instant, exactly.

    Raises:
        ValueError: for a naive datetime, whose zone is unknown.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_datetime(instant: Instant) -> datetime:
    """Convert an instant to an aware datetime in UTC, exactly."""
    return _EPOCH + timedelta(microseconds=instant)


def iso(instant: Instant) -> str:
    """Write an instant as ISO 8601 in UTC; fractions only where there are any (`2026-11-21T08:30:00Z`)."""
    moment = to_datetime(instant)
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")


def local_iso(instant: Instant, zone: tzinfo | None = None) -> str:
    """Write an instant for people: whole seconds in a zone, by default the computer's (`2026-11-21T03:30:00-05:00`)."""
    return to_datetime(instant - instant % SECOND).astimezone(zone).isoformat().replace("+00:00", "Z")


def with_local_times(sentence: str, write: Callable[[Instant], str] = local_iso) -> str:
    """Return a sentence with its times rewritten; other parties write all times in UTC."""

    def local(found: re.Match[str]) -> str:
        try:
            return write(from_iso(found[0]))
        except (ValueError, OverflowError):
            return found[0]

    return _STAMP.sub(local, sentence)


def from_iso(text: str) -> Instant:
    """Read an ISO 8601 date and time, without a zone as UTC; raise `ValueError` for other texts."""
    moment = datetime.fromisoformat(text)
    return from_datetime(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def seconds(duration: Duration) -> float:
    """A duration in seconds, for people and reports only."""
    return duration / SECOND
