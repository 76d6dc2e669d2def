"""Hours of the week at which a site sells."""

from __future__ import annotations

import pytest

from ramp.batch.for_sale import ForSale
from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, HOUR, from_iso, iso


def _openings(hours: tuple[str, ...], begin: str, days: int) -> list[str]:
    at = from_iso(begin)
    return [
        f"{iso(first)[5:16]} {iso(last)[5:16]}" for first, last in ForSale(hours=hours).openings(at, at + days * DAY)
    ]


def test_nights_of_working_days() -> None:
    # 2026-11-20 is a Friday
    assert _openings(("Mon-Fri 22:00-06:00",), "2026-11-20T23:00:00Z", 4) == [
        "11-20T23:00 11-21T06:00",
        "11-23T22:00 11-24T06:00",
        "11-24T22:00 11-24T23:00",
    ]


def test_windows_that_touch_are_one_and_weeks_wrap() -> None:
    assert _openings(("Sat-Mon 00:00-24:00",), "2026-11-20T00:00:00Z", 7) == ["11-21T00:00 11-24T00:00"]
    assert _openings(("Sun 20:00-04:00",), "2026-11-23T00:00:00Z", 1) == ["11-23T00:00 11-23T04:00"]


def test_without_hours_all_are() -> None:
    assert ForSale().openings(5, 5 + HOUR) == [(5, 5 + HOUR)]


@pytest.mark.parametrize("text", ["", "Mon", "Mon 25:00-26:00", "Mon 10:00-24:30", "Mo 10:00-11:00", "Mon 10:00-11:60"])
def test_what_are_no_hours_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"hours\[0\]: got '.*', expected .*'Mon-Fri 18:00-24:00'"):
        ForSale(hours=(text,))


def test_a_share_of_cores() -> None:
    assert [ForSale(share=share).cores(128) for share in (0, 0.3, 0.5, 1)] == [0, 38, 64, 128]
    assert ForSale(share=0.29).cores(100) == 29
