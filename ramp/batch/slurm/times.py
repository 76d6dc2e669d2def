"""Read and write times for Slurm's commands, which run with TZ=UTC."""

from __future__ import annotations

import re
from typing import Final

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Duration, Instant, from_iso

_NONE: Final = frozenset({"", "N/A", "NONE", "None", "Unknown", "(null)", "n/a"})
_ENDLESS: Final = frozenset({"UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit"})
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_LIMIT: Final = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


def instant_of(text: str) -> Instant | None:
    """Read a time such as `2026-11-21T23:11:53` as UTC; None for Slurm's words for no time.

    Raises:
        ValueError: if the text is neither.
    """
    if text in _NONE:
        return None
    if not _TIME.fullmatch(text):
        raise ValueError(f"invalid time: {text[:40]!r}")
    return from_iso(text)


def duration_of(text: str) -> Duration | None:
    """Read a time limit (`10:00` is ten minutes, `1-00:00:00` a day); None for Slurm's words for no limit.

    Raises:
        ValueError: if the text is neither.
    """
    if text in _ENDLESS:
        return None
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid time limit: {text[:40]!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND


def told(instant: Instant) -> str:
    """Write a whole second in the form that Slurm reads in every time zone: `uts<seconds since 1970>`."""
    return f"uts{instant // SECOND}"
