"""Durations and moments as people type them."""

import pytest

from ramp.client.times import duration_of, moment_of, whole_seconds_up
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, from_iso, local_iso, with_local_times

NOW = from_iso("2026-11-21T08:30:00Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90 * SECOND),
        ("0.5", SECOND // 2),
        ("1w", 7 * DAY),
        ("90s", 90 * SECOND),
        ("5min", 5 * MINUTE),
        ("1h30min", 90 * MINUTE),
        ("1 h 30 min", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("2d", 2 * DAY),
        ("24h", DAY),
        ("01:30:00", 90 * MINUTE),
        ("1:30", 90 * MINUTE),
        ("2-12:00:00", 60 * HOUR),
    ],
)
def test_durations_are_read(text, expected):
    assert duration_of(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-5min", "1h foo", "1:75", "h", "1e3"])
def test_what_is_no_duration_is_refused_with_what_would_be_right(text):
    with pytest.raises(ValueError, match="expected a length such as 90s"):
        duration_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-21T08:30:00Z"),
        ("+5min", "2026-11-21T08:35:00Z"),
        ("+1d", "2026-11-22T08:30:00Z"),
        ("2026-11-23T10:00", "2026-11-23T10:00:00Z"),
        ("2026-11-23 10:00:00+01:00", "2026-11-23T09:00:00Z"),
        ("2026-11-23", "2026-11-23T00:00:00Z"),
        ("-1h", "2026-11-21T07:30:00Z"),
        ("-2d", "2026-11-19T08:30:00Z"),
        ("today", "2026-11-21T00:00:00Z"),
        ("yesterday", "2026-11-20T00:00:00Z"),
        ("tomorrow", "2026-11-22T00:00:00Z"),
        ("Tomorrow  08:00", "2026-11-22T08:00:00Z"),
        ("yesterday at 18:05", "2026-11-20T18:05:00Z"),
        ("18:00", "2026-11-21T18:00:00Z"),
        ("08:30", "2026-11-22T08:30:00Z"),  # it is that now: the next one
        ("8:00z", "2026-11-22T08:00:00Z"),
        ("monday 06:00", "2026-11-23T06:00:00Z"),  # 2026-11-21 is a Saturday
        ("saturday", "2026-11-28T00:00:00Z"),
    ],
)
def test_moments_are_read(text, expected):
    assert moment_of(text, NOW) == from_iso(expected)


@pytest.mark.parametrize(
    "text", ["", "5min", "tomorrow morning", "soon", "25:00", "21/11/2026", "2026-13-01", "+", "+x"]
)
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError, match="expected a time such as now"):
        moment_of(text, NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow 18:00", "2026-11-22T23:00:00Z"),
        ("today", "2026-11-21T05:00:00Z"),  # it is 3:30 there
        ("18:00", "2026-11-21T23:00:00Z"),
        ("03:00", "2026-11-22T08:00:00Z"),
        ("18:00z", "2026-11-21T18:00:00Z"),
        ("2026-07-01", "2026-07-01T04:00:00Z"),  # summer time
        ("2026-11-23T10:00", "2026-11-23T15:00:00Z"),
        ("2026-11-23T10:00Z", "2026-11-23T10:00:00Z"),
        ("+1d", "2026-11-22T08:30:00Z"),
    ],
)
def test_a_moment_without_a_zone_is_in_the_zone_of_the_computer(new_york, text, expected):
    assert moment_of(text, NOW) == from_iso(expected)


def test_the_times_in_the_sentence_of_another_party_are_local_and_whole_seconds(new_york):
    said = "it ends at 2026-11-28T17:56:46.467527Z, after 2026-11-28T17:00:00Z; not 2026-99-99T99:99:99Z or 2026-11-28"
    assert with_local_times(said) == (
        "it ends at 2026-11-28T12:56:46-05:00, after 2026-11-28T12:00:00-05:00; not 2026-99-99T99:99:99Z or 2026-11-28"
    )
    assert with_local_times("at 2026-11-28T17:56:46.467527Z", lambda at: str(at % 10)) == "at 7"


def test_a_moment_for_people_names_its_zone_and_can_be_read_again(new_york):
    assert local_iso(NOW + 467_527) == "2026-11-21T03:30:00-05:00"
    assert moment_of(local_iso(NOW), 0) == NOW


@pytest.mark.parametrize("text", ["+99999999d", "-99999999d", "9999-12-31T23:59", "0001-01-01", "9000-01-01T00:00Z"])
def test_a_moment_out_of_range_is_refused(text):
    with pytest.raises(ValueError, match=r"time out of range: got .*, expected a time from 1970 to 8999"):
        moment_of(text, NOW)


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59"])
def test_the_ends_of_the_calendar_are_out_of_range_in_any_zone(new_york, text):
    with pytest.raises(ValueError, match="time out of range: got"):
        moment_of(text, NOW)


@pytest.mark.parametrize("text", ["999999999w", "999999999d999999999d"])
def test_a_duration_out_of_range_is_refused(text):
    with pytest.raises(ValueError, match=r"below 317 years: got .*, expected a length such as 90s"):
        duration_of(text)


def test_seconds_are_rounded_up_and_whole_ones_stay():
    assert whole_seconds_up(NOW) == NOW
    assert whole_seconds_up(NOW + 1) == NOW + SECOND
