"""The part of a batch system that a site sells, and when; local jobs keep the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Duration, Instant, to_datetime
from ramp.options import Bounds

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOURS: Final = re.compile(rf"({'|'.join(_DAYS)})(?:-({'|'.join(_DAYS)}))? (\d\d):(\d\d)-(\d\d):(\d\d)")
_WEEK: Final[Duration] = 7 * DAY


@dataclass(frozen=True, slots=True)
class ForSale:
    """The site's choice; a table of the plug-in's options.

    Attributes:
        share: greatest share of the cores that the market may have at any time, 0 to 1.
        horizon_h: latest end of a slot, in hours from now.
        shortest_notice_s: earliest start of a slot, in seconds from now.
        longest_slot_h: maximum length of a slot, in hours.
        hours: hours of the week in which slots must lie, UTC, as `"Mon-Fri 18:00-24:00"`; empty for all hours.
    """

    share: Annotated[float, Bounds(0, 1)] = 1.0
    horizon_h: Annotated[int, Bounds(1, 8760)] = 720
    shortest_notice_s: Annotated[int, Bounds(0, 604_800)] = 0
    longest_slot_h: Annotated[int, Bounds(1, 8760)] = 720
    hours: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number, text in enumerate(self.hours):
            _windows_of(text, f"hours[{number}]")

    def cores(self, all_cores: int) -> int:
        """Return how many cores of a system the market may have at any time."""
        return int(all_cores * self.share + 1e-9)

    def earliest(self, now: Instant) -> Instant:
        """Return the earliest start of a slot."""
        return now + self.shortest_notice_s * SECOND

    def latest_end(self, now: Instant) -> Instant:
        """Return the latest end of a slot."""
        return now + self.horizon_h * HOUR

    @property
    def longest(self) -> Duration:
        return self.longest_slot_h * HOUR

    def openings(self, begin: Instant, end: Instant) -> Sequence[tuple[Instant, Instant]]:
        """Return the separate windows, in order, in which slots may lie between two instants."""
        if not self.hours:
            return [(begin, end)]
        monday = to_datetime(begin)
        midnight = monday.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=monday.weekday())
        week = begin - (monday - midnight) // timedelta(microseconds=1)
        found: list[tuple[Instant, Instant]] = []
        weekly = sorted(window for text in self.hours for window in _windows_of(text, "hours"))
        at = week - _WEEK  # a window of last Sunday may reach into this week
        while at < end:
            for first, last in weekly:
                if at + last <= begin or at + first >= end:
                    continue
                if found and at + first <= found[-1][1]:
                    found[-1] = (found[-1][0], max(found[-1][1], at + last))
                else:
                    found.append((at + first, at + last))
            at += _WEEK
        return [(max(first, begin), min(last, end)) for first, last in found]


def _windows_of(text: str, key: str) -> list[tuple[Duration, Duration]]:
    """Return the windows of one entry, from Monday 00:00 UTC; one that ends before it begins ends on the next day.

    Raises:
        ConfigurationError: if the entry is invalid.
    """
    match = _HOURS.fullmatch(text)
    times = [int(match[number]) for number in (3, 4, 5, 6)] if match else []
    if match is None or times[0] > 23 or times[2] > 24 or max(times[1], times[3]) > 59 or (times[2] == 24 and times[3]):
        raise ConfigurationError(f"got {text!r}, expected hours of the week such as 'Mon-Fri 18:00-24:00'", key=key)
    first = _DAYS.index(match[1])
    last = _DAYS.index(match[2]) if match[2] else first
    begin, end = times[0] * HOUR + times[1] * MINUTE, times[2] * HOUR + times[3] * MINUTE
    length = (end - begin) if end > begin else end - begin + DAY
    days = [(first + step) % 7 for step in range((last - first) % 7 + 1)]
    return [(day * DAY + begin, day * DAY + begin + length) for day in days]
