"""Refuse requests that a machine can never serve, and runs that do not fit into their windows, for all machines."""

from __future__ import annotations

from ramp.model.instant import Instant, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit


def request_refusal(unit: RequestUnit, cores: int, now: Instant) -> Refusal | None:
    """Refuse a unit that needs more cores than the machine sells, or whose window holds no run; None if it fits."""
    if unit.cores.total > cores:
        detail = f"the request needs {unit.cores.total} cores, the machine sells {cores}"
        return Refusal(unit.number, RefusalCode.MACHINE_TOO_SMALL, f"{cores} cores", detail)
    earliest, duration = unit.run_from(now)
    if unit.deadline > now and 0 < duration <= unit.deadline - earliest:
        return None
    nearest = iso_or_empty(earliest + duration) if duration > 0 else ""  # the end of a run begun at once
    if unit.deadline <= now:
        detail = f"the deadline {iso(unit.deadline)} has passed"
        return Refusal(unit.number, RefusalCode.WINDOW_PASSED, nearest, detail)
    detail = f"a run of {seconds(duration):g} s does not end by {iso(unit.deadline)}"
    return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT, nearest, detail)


def iso_or_empty(instant: Instant | None) -> str:
    """Return an instant as text; empty without one, and for one after the calendar's end."""
    try:
        return "" if instant is None else iso(instant)
    except OverflowError:
        return ""
