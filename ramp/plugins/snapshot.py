"""Common parts of a plug-in's snapshot (`ResourcePlugin.snapshot`): reservations, and the projected load."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from ramp.model.instant import Duration, Instant, iso
from ramp.model.slot import Reservation

LOAD_SLICES: Final = 24
"""Number of equal parts of the horizon in the projected load."""


def reservation_shown(each: Reservation) -> dict[str, Any]:
    """Return a reservation as one of the snapshot's `reservations`."""
    return {
        "reservation_id": each.reservation_id,
        "key": each.key,
        "cores": each.slot.cores,
        "start": iso(each.slot.start),
        "end": iso(each.slot.end),
        "firm": each.firm,
        "held_until": None if each.held_until is None else iso(each.held_until),
    }


def load_shown(now: Instant, horizon: Duration, load: Callable[[Instant, Instant], float]) -> list[dict[str, Any]]:
    """Return the snapshot's `projected_load`: the mean load of each of `LOAD_SLICES` parts; `time` is its begin.

    Args:
        now: the present.
        horizon: how far ahead, in microseconds; 0 gives no parts.
        load: mean load from one instant to a later one, 0 to 1.
    """
    slices = min(LOAD_SLICES, max(horizon, 1))
    bounds = [now + horizon * part // slices for part in range(slices + 1)]
    return [{"time": iso(begin), "load": load(begin, end)} for begin, end in pairwise(bounds) if begin < end]
