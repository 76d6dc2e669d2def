"""What the simulated machines behind Resource Agents have in common: quotes on a profile, reservations in a book.

A machine states how many of its cores will be taken by when (`BookedMachine.profile`, its own load and all live
reservations together); quotes, holds and their ends follow from that alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ramp.errors import PluginError
from ramp.model.instant import SECOND, Duration, Instant, from_iso, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.answers import iso_or_empty, run_window
from ramp.plugins.interface import ResourcePlugin
from ramp.plugins.snapshot import machine_shown
from simulation.resource.machine_clock import MachineClock
from simulation.resource.reservation_book import Change, ReservationBook, Standing
from simulation.workload.profile import NEVER, CoreProfile, ReservedWindow


class BookedMachine(ResourcePlugin):
    """A machine of like cores, any of which serve any job."""

    def __init__(
        self,
        *,
        plugin: str,
        source: str,
        resource: str,
        cores: int,
        clock: MachineClock,
        state_dir: Path | None,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        """Open the machine's book.

        Args:
            plugin: registered name of the plug-in.
            source: what drives the machine's queue, `log` or `synthetic`.
            resource: the machine's name.
            cores: its cores.
            clock: wall instants to machine time.
            state_dir: folder of the book, None for memory.
            on_change: told of every record of the book, those of earlier lives first.

        Raises:
            PluginError: the book cannot be read.
        """
        self.source = source
        self.resource = resource
        self.capacity = cores
        self.clock = clock
        self._plugin = plugin
        self._book = ReservationBook(plugin, resource, state_dir, on_change)
        self._windows: dict[str, tuple[Slot, ReservedWindow]] = {}
        """Windows of the latest live reservations by key, so that only new or changed ones are converted."""

    @abstractmethod
    def profile(self, now: Instant, until: int) -> CoreProfile:
        """Return the cores taken from `now` on, by its own jobs and all live reservations, in machine time.

        Args:
            now: wall instant.
            until: machine time up to which the profile must be complete, exclusive; `NEVER` for all of it.
        """

    @abstractmethod
    def jobs(self, now: Instant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return running and queued jobs as a snapshot lists them (`ResourcePlugin.snapshot`)."""

    def job_shown(
        self, number: int, cores: int, submitted: int, start: int, end: int, user: int | str | None
    ) -> dict[str, Any]:
        """Return a job as a snapshot lists it; times of the machine."""
        return {
            "job": number,
            "cores": cores,
            "start": iso(self.clock.instant(start)),
            "end": iso(self.clock.instant(end)),
            "submitted": iso(self.clock.instant(submitted)),
            "user": user,
        }

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """Return the earliest slot of the unit's window with the cores free throughout; see `ResourcePlugin.quote`."""
        if isinstance(window := run_window(unit, self.capacity, now), Refusal):
            return window
        earliest, duration = window
        slot = self._earliest_slot(unit, duration, earliest, unit.deadline - duration, now)
        if slot is None:
            later = self._earliest_slot(unit, duration, earliest, None, now)
            detail = (
                f"{unit.cores.total} of {self.capacity} cores are not free together for {seconds(duration):g} s "
                f"between {iso(earliest)} and {iso(unit.deadline)}"
            )
            nearest = iso_or_empty(None if later is None else later.start)
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, nearest, detail)
        return slot

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        """Set a slot aside; see `ResourcePlugin.hold`.

        A slot whose start has passed meanwhile can be held as long as its rest is free. An offer's key holds once:
        after its hold has run out it is refused with `HOLD_EXPIRED`.
        """
        with self._book.writing() as writer:
            standing = self._book.standing(key, now)
            if standing is Standing.UNKNOWN:
                if until <= now:
                    detail = f"the hold would have ended at {iso(until)}"
                    return Refusal(unit.number, RefusalCode.HOLD_EXPIRED, detail=detail)
                taken = self._taken(slot, now)
                if taken:
                    return Refusal(unit.number, RefusalCode.SLOT_TAKEN, detail=taken)
                writer.hold(key, unit.number, slot, until, now)
            return self._answer(key, now)

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Make a hold firm; see `ResourcePlugin.confirm`."""
        with self._book.writing() as writer:
            if self._book.standing(key, now) is Standing.HELD:
                writer.confirm(key, now)
            return self._answer(key, now)

    def release(self, key: str, now: Instant) -> None:
        """Give a hold or reservation back; see `ResourcePlugin.release`.

        A key that is released before it was ever held (messages overtake each other) can never be held.
        """
        with self._book.writing() as writer:
            if self._book.standing(key, now) is not Standing.RELEASED:
                writer.release(key, now)

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        with self._book.writing() as writer:
            writer.forget(keys, now)

    def resize(self, key: str, step: int, cores: int, until: Instant, now: Instant) -> Reservation | Refusal:
        with self._book.writing() as writer:
            entry = self._book.entry(key)
            if entry is None or entry.reservation is None or entry.standing(now) is not Standing.FIRM:
                return self._not_firm(key, now)
            slot = entry.reservation.slot
            if step < entry.step:
                overtaken = f"{key} has been changed by the later step {entry.step}"
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=overtaken)
            if step > entry.step:
                changed = self._resized(entry.reservation, entry.earlier, cores, until, now)
                if isinstance(changed, str):
                    return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=changed)
                writer.resize(key, step, slot, changed, now)
            elif (slot.cores, slot.end) != (cores, until):
                other = f"step {step} of {key} was a different change"
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=other)
            return self._answer(key, now)

    def _not_firm(self, key: str, now: Instant) -> Refusal:
        answer = self._answer(key, now)
        if isinstance(answer, Refusal):
            return answer
        return Refusal(0, RefusalCode.HOLD_EXPIRED, detail=f"{key} is only held, not confirmed")

    def _resized(
        self, reservation: Reservation, earlier: Sequence[Slot], cores: int, until: Instant, now: Instant
    ) -> Slot | str:
        """Return a firm slot with another size, or why it cannot have that; `earlier` are its slots in other places."""
        del earlier
        taken = self._more_taken(reservation.slot, cores, until, now)
        return taken or replace(reservation.slot, cores=cores, end=until)

    def _more_taken(self, slot: Slot, cores: int, until: Instant, now: Instant) -> str:
        if cores > slot.cores:
            more = self._taken(replace(slot, cores=cores - slot.cores, end=min(until, slot.end)), now)
            if more:
                return more
        return self._taken(replace(slot, start=slot.end, end=until, cores=cores), now) if until > slot.end else ""

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """Return the hold or reservation of a key, or None; a firm one stays known after its end."""
        entry = self._book.entry(key)
        if entry is None or entry.standing(now) not in {Standing.HELD, Standing.FIRM}:
            return None
        return entry.reservation

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """Return all holds and reservations that have not ended, by start."""
        return self._book.live(now)

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """Return the machine as `ramp qstat` shows it; see `ResourcePlugin.snapshot`.

        Starts and ends of queued jobs and ends of running ones are projections.
        """
        running, queued = self.jobs(now)
        machine_now = self.clock.log_time(now)
        busy = self.profile(now, machine_now + 1).max_over(machine_now, machine_now + 1)
        # a waiting job that is planned to start now takes no cores yet
        busy -= sum(job["cores"] for job in queued if from_iso(job["start"]) <= now)
        return machine_shown(
            self.resource,
            self.source,
            self.capacity,
            self._book.live(now),
            now,
            horizon,
            load=lambda begin, end: self._load(begin, end, now),
            busy=busy,
            running=running,
            queued=queued,
            machine_time_s=machine_now / SECOND,
        )

    def reserved_windows(self, now: Instant) -> list[ReservedWindow]:
        """Return what live holds and reservations take, in machine time."""
        before, self._windows = self._windows, {}
        for each in self._book.live(now):
            known = before.get(each.key)
            if known is None or known[0] is not each.slot:
                start, end = self.clock.log_window(each.slot.start, each.slot.end)
                known = each.slot, ReservedWindow(start, end, each.slot.cores)
            self._windows[each.key] = known
        return [window for _, window in self._windows.values()]

    def _earliest_slot(
        self, unit: RequestUnit, duration: Duration, earliest: Instant, latest: Instant | None, now: Instant
    ) -> Slot | None:
        """Return the first slot for a unit that starts in [earliest, latest] (None = any later time), or None."""
        cores, length = unit.cores.total, self.clock.log_duration(duration)
        if latest is None:
            first, last, until = self.clock.log_time(earliest), NEVER, NEVER
        else:
            first, last = self.clock.log_window(earliest, latest)
            until = last + length
        profile = self.profile(now, until)
        found = profile.earliest_start(cores, length, first, last)
        if found is None:
            return None
        start = earliest if found == first else self.clock.instant(found)
        if latest is not None and start > latest:
            return None
        end = start + duration
        load = profile.mean_over(*self.clock.log_window(start, end)) / self.capacity
        return Slot(start, end, cores, load)

    def _answer(self, key: str, now: Instant) -> Reservation | Refusal:
        entry = self._book.entry(key)
        standing = self._book.standing(key, now)
        if entry is not None and entry.reservation is not None and standing in {Standing.HELD, Standing.FIRM}:
            return entry.reservation
        unit = entry.unit if entry is not None else 0
        if standing is Standing.RELEASED:
            return Refusal(unit, RefusalCode.CANCELLED, detail=f"{key} was released")
        reason = "was never held" if entry is None else "is no longer held: the hold expired"
        return Refusal(unit, RefusalCode.HOLD_EXPIRED, detail=f"{key} {reason}")

    def _taken(self, slot: Slot, now: Instant) -> str:
        """Return why a slot cannot be had any more; empty if it can."""
        start = max(slot.start, now)
        if start >= slot.end:
            return f"the slot ended at {iso(slot.end)}"
        if not 0 < slot.cores <= self.capacity:
            raise PluginError(
                self._plugin, f"a slot of {slot.cores} cores was never quoted: {self.resource} has {self.capacity}"
            )
        log_start, log_end = self.clock.log_window(start, slot.end)
        free = self.capacity - self.profile(now, log_end).max_over(log_start, log_end)
        return "" if slot.cores <= free else f"the slot needs {slot.cores} cores, but only {free} are free throughout"

    def _load(self, start: Instant, end: Instant, now: Instant) -> float:
        profile = self.profile(now, self.clock.log_time(end))
        return profile.mean_over(*self.clock.log_window(start, end)) / self.capacity
