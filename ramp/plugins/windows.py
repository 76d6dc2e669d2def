"""Whether a run fits into its window at all: what all machines refuse alike."""

from __future__ import annotations

from ramp.model.instant import Instant, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit


def window_refusal(unit: RequestUnit, now: Instant) -> Refusal | None:
    """Why a unit's window holds no run, with the nearest deadline that would pass; None where it does.

    Args:
        unit: as it is called for.
        now: the present.
    """
    earliest, duration = unit.earliest_start(now), unit.run_duration(now)
    nearest = iso_or_empty(earliest + duration) if duration > 0 else ""  # the end of a run begun at once
    if unit.deadline <= now:
        detail = f"the deadline {iso(unit.deadline)} has passed"
        return Refusal(unit.number, RefusalCode.WINDOW_PASSED, nearest, detail)
    if duration <= 0 or unit.deadline - duration < earliest:
        detail = f"a run of {seconds(duration):g} s does not end by {iso(unit.deadline)}"
        return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT, nearest, detail)
    return None


def iso_or_empty(instant: Instant | None) -> str:
    """An instant as text; empty where there is none or it lies behind the calendar's end."""
    try:
        return "" if instant is None else iso(instant)
    except OverflowError:
        return ""
