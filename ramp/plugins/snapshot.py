"""Write a plug-in's snapshot (`ResourcePlugin.snapshot`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from ramp.model.instant import SECOND, Duration, Instant, iso
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


def machine_shown(
    resource: str,
    source: str,
    cores: int,
    reservations: Sequence[Reservation],
    now: Instant,
    horizon: Duration,
    *,
    load: Callable[[Instant, Instant], float] | None = None,
    busy: int | None = None,
    running: Sequence[dict[str, Any]] = (),
    queued: Sequence[dict[str, Any]] = (),
    machine_time_s: float | None = None,
) -> dict[str, Any]:
    """Return a machine's snapshot.

    Args:
        resource: its name.
        source: origin of its queue.
        cores: its cores.
        reservations: all live holds and reservations.
        now: the present.
        horizon: how far ahead the load is projected.
        load: mean load from one instant to a later one; by default the reservations' share.
        busy: cores in use; by default those of reservations that have begun.
        running: jobs that run.
        queued: jobs that wait.
        machine_time_s: the machine's own time in seconds; by default that of `now`.
    """
    slots = [each.slot for each in reservations]
    if busy is None:
        busy = min(cores, sum(slot.cores for slot in slots if slot.start <= now < slot.end))

    def reserved(begin: Instant, end: Instant) -> float:
        taken = sum(slot.cores * max(0, min(slot.end, end) - max(slot.start, begin)) for slot in slots)
        return min(1.0, taken / (cores * (end - begin)))

    return {
        "resource": resource,
        "source": source,
        "time": iso(now),
        "machine_time_s": now / SECOND if machine_time_s is None else machine_time_s,
        "cores": cores,
        "cores_busy": busy,
        "load": busy / cores,
        "running": list(running),
        "queued": list(queued),
        "reservations": [reservation_shown(each) for each in reservations],
        "projected_load": load_shown(now, horizon, load or reserved),
    }
