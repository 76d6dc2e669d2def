"""The plug-in `filebatch`: sells what the batch system in a file leaves free."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from filebatch.batch import Batch, Window, cores_taken, mean_taken
from ramp.errors import ConfigurationError
from ramp.model.instant import iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.plugins.answers import iso_or_empty, request_refusal
from ramp.plugins.interface import PluginSettings, Reservation, ResourcePlugin, Slot
from ramp.plugins.snapshot import machine_shown


def open_plugin(settings: PluginSettings) -> FileBatchPlugin:
    """The entry point. Option `file`: the batch system's file; by default one in the agent's state folder."""
    unknown = sorted(set(settings.options) - {"file"})
    if unknown:
        raise ConfigurationError("unknown; filebatch knows file", key=f"{settings.resource}.{unknown[0]}")
    file = settings.options.get("file", "")
    if not isinstance(file, str) or not (file or settings.state_dir):
        raise ConfigurationError(f"is {file!r}; the batch system's file is wanted", key=f"{settings.resource}.file")
    return FileBatchPlugin(settings, Path(file) if file else Path(settings.state_dir or ".") / "batch.sqlite")


class FileBatchPlugin(ResourcePlugin):
    """One machine."""

    def __init__(self, settings: PluginSettings, file: Path) -> None:
        self.resource = settings.resource
        self.capacity = settings.cores
        self._batch = Batch(file)

    def quote(self, unit: RequestUnit, now: int) -> Slot | Refusal:
        """The first slot in the window with the cores free throughout."""
        wanted, (first, run) = unit.cores.total, unit.run_from(now)
        last = unit.deadline - run
        refused = request_refusal(unit, self.capacity, now)
        if refused is not None:
            return refused
        taken = self._batch.taken(now)
        start = self._first_start(taken, wanted, run, first)
        if start > last:
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, iso_or_empty(start))
        return Slot(start, start + run, wanted, self._load(taken, start, start + run))

    def _first_start(self, taken: list[Window], wanted: int, run: int, first: int) -> int:
        """Cores come free only when something ends, so no other starts need to be tried."""
        starts = [first, *sorted(each.ends for each in taken if each.ends > first)]
        return next(at for at in starts if cores_taken(taken, at, at + run) + wanted <= self.capacity)

    def _load(self, taken: list[Window], begins: int, ends: int) -> float:
        return min(1.0, mean_taken(taken, begins, ends) / self.capacity)

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: int, now: int) -> Reservation | Refusal:
        """Set a slot aside; a key that was ever used answers what became of it."""
        with self._batch.changing():
            if self._batch.reservation(key) is None:
                if until <= now:
                    return Refusal(unit.number, RefusalCode.HOLD_EXPIRED)
                if cores_taken(self._batch.taken(now), slot.start, slot.end) + slot.cores > self.capacity:
                    return Refusal(unit.number, RefusalCode.SLOT_TAKEN)
                self._batch.add_reservation(key, Window(slot.start, slot.end, slot.cores), slot.load, until)
            return self._answer(key, now, unit.number)

    def confirm(self, key: str, now: int) -> Reservation | Refusal:
        """Make a hold firm."""
        with self._batch.changing():
            if isinstance(self._answer(key, now), Reservation):
                self._batch.make_firm(key)
            return self._answer(key, now)

    def release(self, key: str, now: int) -> None:
        """Give back what a key has."""
        with self._batch.changing():
            self._batch.release(key)

    def reservation(self, key: str, now: int) -> Reservation | None:
        """What stands under a key."""
        answer = self._answer(key, now)
        return answer if isinstance(answer, Reservation) else None

    def reservations(self, now: int) -> tuple[Reservation, ...]:
        """All that is set aside, by start."""
        return tuple(self._reservation(row) for row in self._batch.reservations(now))

    def _answer(self, key: str, now: int, unit: int = 0) -> Reservation | Refusal:
        """What stands under a key, or why nothing does."""
        row = self._batch.reservation(key)
        if row is not None and row["state"] == "released":
            return Refusal(unit, RefusalCode.CANCELLED)
        if row is None or (row["state"] == "held" and row["held_until"] <= now):
            return Refusal(unit, RefusalCode.HOLD_EXPIRED)
        return self._reservation(row)

    def _reservation(self, row: sqlite3.Row) -> Reservation:
        slot = Slot(row["begins"], row["ends"], row["cores"], row["load"])
        name = f"{self.resource}-{row['number']}"
        return Reservation(row["key"], name, slot, row["state"] == "firm", row["held_until"])

    def snapshot(self, now: int, horizon: int) -> dict[str, Any]:
        """The machine as `ramp qstat` shows it."""
        taken, jobs = self._batch.taken(now), [_job(row) for row in self._batch.jobs(now)]
        busy = min(self.capacity, cores_taken(taken, now, now + 1))
        return machine_shown(
            self.resource,
            self.source,
            self.capacity,
            self.reservations(now),
            now,
            horizon,
            load=partial(self._load, taken),
            busy=busy,
            running=[job for job in jobs if job["start"] <= iso(now)],
            queued=[job for job in jobs if job["start"] > iso(now)],
        )


def _job(row: sqlite3.Row) -> dict[str, Any]:
    times = {"start": iso(row["begins"]), "end": iso(row["ends"]), "submitted": iso(row["begins"])}
    return {"job": row["name"], "cores": row["cores"], "user": None, **times}
