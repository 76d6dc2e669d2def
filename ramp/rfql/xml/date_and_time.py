"""RFQL's split moments: an xs:date and an xs:time make an instant; without a zone they are UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from ramp.model import instant
from ramp.model.instant import INSTANT_END, Instant
from ramp.rfql.xml.markup import shown

_ZONE: Final = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_DATE: Final = re.compile(r"\s*(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})" + _ZONE + r"\s*")
_TIME: Final = re.compile(
    r"\s*(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?" + _ZONE + r"\s*"
)


def split(moment: Instant) -> tuple[str, str]:
    """Write an instant as date and time: `2026-11-21` and `08:30:00Z`."""
    date, _, time = instant.iso(moment).partition("T")
    return date, time


def join(date: str, time: str) -> Instant:
    """Read a date and a time as one instant.

    A zone may be in either; if both have one they must agree. `24:00:00` is the midnight that ends the day.

    Args:
        date: an xs:date.
        time: an xs:time; digits below the microsecond are cut off.

    Raises:
        ValueError: in plain words, if the two make no instant.
    """
    day = _DATE.fullmatch(date)
    clock = _TIME.fullmatch(time)
    if day is None:
        raise ValueError(f"invalid date: got {shown(date)}, expected a date such as 2026-11-21")
    if clock is None:
        raise ValueError(f"invalid time: got {shown(time)}, expected a time such as 08:30:00")
    if day["zone"] and clock["zone"] and _offset(day["zone"]) != _offset(clock["zone"]):
        raise ValueError(f"the date's zone {day['zone']} and the time's zone {clock['zone']} differ")
    ends_day = clock["hour"] == "24"
    if ends_day and int(clock["minute"] + clock["second"] + (clock["fraction"] or "")) != 0:
        raise ValueError(f"invalid time: got {time!r}, expected hour 24 only in 24:00:00 (midnight)")
    try:
        moment = datetime(
            int(day["year"]),
            int(day["month"]),
            int(day["day"]),
            0 if ends_day else int(clock["hour"]),
            int(clock["minute"]),
            int(clock["second"]),
            int((clock["fraction"] or "0")[:6].ljust(6, "0")),
            timezone(_offset(clock["zone"] or day["zone"])),
        )
        moment += timedelta(days=1 if ends_day else 0)
        found = instant.from_datetime(moment.astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"invalid date and time: got {date.strip()} {time.strip()}: {error}") from error
    if not 0 <= found < INSTANT_END:
        raise ValueError(f"date out of range: got {date.strip()} {time.strip()}, expected 1970 to 9000")
    return found


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return -offset if zone[0] == "-" else offset
