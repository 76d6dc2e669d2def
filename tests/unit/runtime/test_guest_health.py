"""How a guest that has failed is left alone, and when it is well again."""

from typing import Any

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.runtime.guests.health import GuestHealth


def health() -> tuple[GuestHealth, list[str]]:
    told: list[str] = []
    watch: Any = lambda progress: told.append(f"{progress.guest}: {progress.reason}")  # noqa: E731
    return GuestHealth("plug-in", watch), told


def test_pauses_double_up_to_a_minute_and_begin_anew_after_a_good_answer() -> None:
    guest, _ = health()
    now, pauses = HOUR, []
    for _ in range(9):
        guest.failed("quote", "broken", now)
        begin = now
        while guest.resting("quote", now):
            now += SECOND // 2
        pauses.append((now - begin) / SECOND)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    guest.answered("quote")
    guest.failed("quote", "broken", now)
    assert guest.resting("quote", now + SECOND - 1) == "broken"
    assert guest.resting("quote", now + SECOND) == ""


def test_failures_within_a_pause_do_not_lengthen_it() -> None:
    guest, told = health()
    for tenth in range(9):
        guest.failed("confirm", f"broken {tenth}", tenth * SECOND // 10)
    assert guest.resting("hold", SECOND - 1) == "broken 8"
    assert guest.resting("hold", SECOND) == ""
    assert len(told) == 9


def test_it_is_well_when_what_has_failed_is_answered_and_says_so_once() -> None:
    guest, told = health()
    guest.failed("quote", "quote: broken", 0)
    guest.failed("confirm", "confirm: broken", 0)
    guest.answered("hold")
    guest.answered("quote")
    assert guest.reason == "confirm: broken"
    guest.answered("confirm")
    guest.answered("confirm")
    assert guest.reason == ""
    assert told == [f"plug-in: {each}" for each in ("quote: broken", "confirm: broken", "confirm: broken", "")]


def test_a_sale_shows_that_looks_and_releases_are_well_too() -> None:
    """After a hold that is in doubt the machine is looked at; nobody may have a reason to look again."""
    guest, told = health()
    for call in ("hold", "release", "reservation"):
        guest.failed(call, f"{call}: broken", 0)
    guest.answered("reservation")
    assert guest.reason == "release: broken"
    guest.answered("quote")
    guest.answered("hold")
    assert guest.reason == ""
    assert told[3:] == ["plug-in: release: broken", "plug-in: "]


def test_a_snapshot_that_anybody_may_ask_for_keeps_nobody_from_buying() -> None:
    guest, _ = health()
    guest.failed("snapshot", "no picture", 0)
    assert guest.resting("snapshot", 1) == "no picture"
    assert guest.resting("quote", 1) == guest.resting("hold", 1) == ""
    guest.failed("hold", "broken", 0)
    assert guest.resting("quote", 1) == "broken"
    guest.failed("open", "not there", 0)
    assert guest.resting("snapshot", 1) == "not there"


def test_a_clock_that_was_set_back_leaves_nobody_resting_for_hours() -> None:
    guest, _ = health()
    guest.failed("quote", "broken", 9 * HOUR)
    assert guest.resting("quote", 8 * HOUR) == ""
    guest.failed("quote", "broken", 8 * HOUR)
    assert guest.resting("quote", 8 * HOUR + 2 * SECOND - 1) == "broken"
    assert guest.restart_pause("quote", 8 * HOUR) == 2 * SECOND
    assert guest.restart_pause("quote", 7 * HOUR) == MINUTE
