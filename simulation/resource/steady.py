"""The plug-in `steady`: a machine whose own users always take the same share, for trials without a workload log.

Its capacity for the market is what that share leaves; holds and reservations count exactly. Nothing is read from a
file, so it suits protocol studies and first trials; studies of prices want `fake_qstat`, which replays a real log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import Duration, Instant, iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings

SNAPSHOT_STEPS: Final = 24
"""Points of the projected load in a snapshot."""


class SteadyMachine:
    """One machine with a constant load of its own.

    Args:
        resource: the resource's name, part of the reservation ids.
        cores: cores of the machine.
        load: share of them always taken by the machine's own users, 0 to 1.
    """

    source = "steady"

    def __init__(self, resource: str, cores: int, load: float) -> None:
        self._resource = resource
        self._cores = cores
        self._background = min(cores, round(cores * load))
        self._reservations: dict[str, Reservation] = {}
        self._released: set[str] = set()
        self._made = 0

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """The earliest start in the unit's window at which enough cores stay free for the whole run."""
        duration = unit.run_duration(now)
        first = unit.earliest_start(now)
        last = unit.deadline - duration
        if duration <= 0 or last < first:
            code = RefusalCode.WINDOW_PASSED if unit.deadline <= now else RefusalCode.WINDOW_TOO_SHORT
            return Refusal(unit.number, code, iso(first + max(duration, 0)), "the window does not hold the run")
        cores = unit.cores.total
        ends = {reservation.slot.end for reservation in self._live(now) if first < reservation.slot.end}
        for start in sorted({first, *ends}):
            taken = self._taken(start, start + duration, now)
            if taken + cores <= self._cores:
                if start > last:
                    return Refusal(unit.number, RefusalCode.CORES_TAKEN, iso(start), "free only after the window")
                return Slot(start, start + duration, cores, taken / self._cores)
        free = f"{self._cores - self._background} cores"
        return Refusal(unit.number, RefusalCode.CORES_TAKEN, free, "its own users take the rest")

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        """Set the slot aside; the same key again answers the same reservation."""
        if key in self._released:
            return Refusal(unit.number, RefusalCode.CANCELLED)
        known = self._reservations.get(key)
        if known is not None:
            return known
        if self._taken(slot.start, slot.end, now) + slot.cores > self._cores:
            return Refusal(unit.number, RefusalCode.SLOT_TAKEN)
        self._made += 1
        reservation = Reservation(key, f"{self._resource}-R{self._made}", slot, False, until)
        self._reservations[key] = reservation
        return reservation

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Make a hold firm."""
        reservation = self._reservations.get(key)
        if reservation is None:
            code = RefusalCode.CANCELLED if key in self._released else RefusalCode.HOLD_EXPIRED
            return Refusal(0, code)
        if not reservation.firm:
            if reservation.held_until is not None and reservation.held_until <= now:
                return Refusal(0, RefusalCode.HOLD_EXPIRED)
            reservation = Reservation(key, reservation.reservation_id, reservation.slot, True, None)
            self._reservations[key] = reservation
        return reservation

    def release(self, key: str, now: Instant) -> None:
        """Give a hold or reservation back."""
        self._reservations.pop(key, None)
        self._released.add(key)

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """The live hold or reservation of that key."""
        reservation = self._reservations.get(key)
        return reservation if reservation is not None and self._counts(reservation, now) else None

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """All live holds and reservations, by start."""
        return tuple(sorted(self._live(now), key=lambda reservation: (reservation.slot.start, reservation.key)))

    def next_event(self, now: Instant) -> Instant | None:
        """When the next hold runs out."""
        held = [entry.held_until for entry in self._live(now) if entry.held_until is not None]
        return min(held, default=None)

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """The machine as `ramp qstat` shows it."""
        step = max(1, horizon // SNAPSHOT_STEPS)
        busy = self._taken(now, now + 1, now)
        return {
            "resource": self._resource,
            "source": self.source,
            "time": iso(now),
            "machine_time_s": 0,
            "cores": self._cores,
            "cores_busy": busy,
            "load": busy / self._cores,
            "running": [],
            "queued": [],
            "reservations": [
                {
                    "reservation_id": entry.reservation_id,
                    "key": entry.key,
                    "cores": entry.slot.cores,
                    "start": iso(entry.slot.start),
                    "end": iso(entry.slot.end),
                    "firm": entry.firm,
                    "held_until": None if entry.held_until is None else iso(entry.held_until),
                }
                for entry in self.reservations(now)
            ],
            "projected_load": [
                {"time": iso(at), "load": self._taken(at, at + 1, now) / self._cores}
                for at in range(now, now + horizon, step)
            ],
        }

    def _counts(self, reservation: Reservation, now: Instant) -> bool:
        return reservation.firm or (reservation.held_until is not None and reservation.held_until > now)

    def _live(self, now: Instant) -> list[Reservation]:
        return [reservation for reservation in self._reservations.values() if self._counts(reservation, now)]

    def _taken(self, start: Instant, end: Instant, now: Instant) -> int:
        """Most cores taken at any instant of [start, end)."""
        overlapping = [entry for entry in self._live(now) if entry.slot.start < end and start < entry.slot.end]
        changes = {start, *(entry.slot.start for entry in overlapping if entry.slot.start > start)}
        peak = max(
            sum(entry.slot.cores for entry in overlapping if entry.slot.start <= at < entry.slot.end) for at in changes
        )
        return self._background + peak


def open_plugin(settings: PluginSettings) -> SteadyMachine:
    """Open the plug-in from a resource's configuration; its option `load` is the machine's own load, 0 to 1.

    Raises:
        ConfigurationError: if the load is no share.
    """
    load = settings.options.get("load", 0.3)
    known: Callable[[object], bool] = lambda value: isinstance(value, int | float) and 0 <= value <= 1  # noqa: E731
    if not known(load):
        raise ConfigurationError(f"{load!r} is no load; right would be a number from 0 to 1", key="load")
    return SteadyMachine(settings.resource, settings.cores, float(load))
