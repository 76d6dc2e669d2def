"""The plug-in `fake_qstat`: a workload log replayed as the live queue of a production machine (paper section 8).

`quote` and `snapshot` are the paper's fake_qstat: running and queued jobs at the machine's time, and whether the cores
are free over the whole window that a job needs. `hold` and `confirm` are its fake_qrstat: what is reserved counts in
every later answer.

Options (the plug-in's table in the machine's configuration):

- `log`: name or path of the log, or `synthetic`; required. Without a copy a synthetic workload of the same length,
  fitted to the machine, stands in, and `source` says so.
- `base_time_s`: where the log stands when the machine's clock begins, seconds from its first submission; 0 or more.
- `speed`: how many times faster than the wall clock the machine's clock runs; 1 (default) or more.
- `synthetic_load`: offered load of a synthetic workload, above 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from ramp.errors import ConfigurationError, PluginError, WorkloadError
from ramp.model.instant import SECOND, Duration, Instant, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource.machine_clock import MachineClock
from simulation.resource.reservation_book import ReservationBook, Standing
from simulation.workload.lublin import DEFAULT_LOAD
from simulation.workload.queue_plan import QueuePlan, ReservedWindow
from simulation.workload.replay import QueueState
from simulation.workload.replay_source import open_replay

NAME: Final = "fake_qstat"
LOAD_SLICES: Final = 24
"""Equal parts of the horizon for which a snapshot gives the projected load."""
_OPTIONS: Final = ("log", "base_time_s", "speed", "synthetic_load")


class FakeQstat:
    """A machine whose queue is the replay of a workload log."""

    def __init__(self, settings: PluginSettings) -> None:
        """Open the log and the book of reservations.

        Args:
            settings: the machine and the plug-in's options.

        Raises:
            ConfigurationError: an option is unknown, missing or out of range, or there is no such log.
            PluginError: the durable state cannot be read.
        """
        options = _Options(settings.resource, settings.options)
        self.resource = settings.resource
        self.capacity = settings.cores
        self.clock = MachineClock(settings.started_at, options.base_time, options.speed)
        try:
            opened = open_replay(options.log, settings.cores, seed=settings.seed, load=options.synthetic_load)
        except WorkloadError as error:
            raise ConfigurationError(str(error), key=f"{settings.resource}.log") from error
        self.source = opened.source
        self._replay = opened.replay
        self._book = ReservationBook(NAME, settings.resource, settings.state_dir)
        self._plan_key: tuple[int, tuple[Reservation, ...]] | None = None
        self._plan: tuple[QueueState, QueuePlan] | None = None

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """The earliest slot of the unit's window with the cores free throughout; see `ResourcePlugin.quote`."""
        cores = unit.cores.total
        if cores > self.capacity:
            detail = f"{cores} cores are wanted, the machine has {self.capacity}"
            return Refusal(unit.number, RefusalCode.MACHINE_TOO_SMALL, f"{self.capacity} cores", detail)
        earliest, duration = unit.earliest_start(now), unit.run_duration(now)
        latest = unit.deadline - duration
        if unit.deadline <= now:
            detail = f"the deadline {iso(unit.deadline)} has passed"
            return Refusal(unit.number, RefusalCode.WINDOW_PASSED, detail=detail)
        if duration <= 0 or latest < earliest:
            nearest = _iso_or_empty(earliest + duration) if duration > 0 else ""
            detail = f"a run of {seconds(duration):g} s does not end by {iso(unit.deadline)}"
            return Refusal(unit.number, RefusalCode.WINDOW_TOO_SHORT, nearest, detail)
        start = self._first_free(cores, duration, earliest, latest, now)
        if start is None:
            free_from = self._first_free(cores, duration, earliest, None, now)
            detail = (
                f"{cores} of {self.capacity} cores are not free together for {seconds(duration):g} s "
                f"between {iso(earliest)} and {iso(unit.deadline)}"
            )
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, _iso_or_empty(free_from), detail)
        return Slot(start, start + duration, cores, self._load(start, start + duration, now))

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
                writer.hold(key, unit.number, slot, until)
            return self._answer(key, now)

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Make a hold firm; see `ResourcePlugin.confirm`."""
        with self._book.writing() as writer:
            if self._book.standing(key, now) is Standing.HELD:
                writer.confirm(key)
            return self._answer(key, now)

    def release(self, key: str, now: Instant) -> None:
        """Give a hold or reservation back; see `ResourcePlugin.release`.

        A key that is released before it was ever held (messages overtake each other) can never be held.
        """
        with self._book.writing() as writer:
            if self._book.standing(key, now) is not Standing.RELEASED:
                writer.release(key)

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """The hold or reservation of a key, or None; a firm one stays known after its end."""
        entry = self._book.entry(key)
        if entry is None or entry.standing(now) not in {Standing.HELD, Standing.FIRM}:
            return None
        return entry.reservation

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """All holds and reservations that have not ended, by start."""
        return self._book.live(now)

    def next_event(self, now: Instant) -> Instant | None:
        """When the next hold runs out, or None."""
        return min((each.held_until for each in self._book.live(now) if each.held_until is not None), default=None)

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """The machine as `ramp qstat` shows it; see `ResourcePlugin.snapshot`.

        Starts and ends of queued jobs and ends of running ones are projections; `projected_load` is the time-mean over
        each of `LOAD_SLICES` equal parts of the horizon, `time` being the part's begin.
        """
        state, plan = self._state(now)
        profile = plan.profile()
        replay, log_now = self._replay, self.clock.log_time(now)
        running_ends = replay.projected_ends(state.running, plan.now).tolist()
        queued = zip(state.queued.tolist(), plan.planned_starts, strict=True)
        busy = profile.max_over(log_now, log_now + 1)
        slices = min(LOAD_SLICES, max(horizon, 1))
        bounds = [now + horizon * part // slices for part in range(slices + 1)]
        return {
            "resource": self.resource,
            "source": self.source,
            "time": iso(now),
            "machine_time_s": log_now / SECOND,
            "cores": self.capacity,
            "cores_busy": busy,
            "load": busy / self.capacity,
            "running": [
                self._job(job, int(replay.started[job]), end)
                for job, end in zip(state.running.tolist(), running_ends, strict=True)
            ],
            "queued": [self._job(job, start, start + int(replay.requested[job])) for job, start in queued],
            "reservations": [
                {
                    "reservation_id": each.reservation_id,
                    "key": each.key,
                    "cores": each.slot.cores,
                    "start": iso(each.slot.start),
                    "end": iso(each.slot.end),
                    "firm": each.firm,
                    "held_until": None if each.held_until is None else iso(each.held_until),
                }
                for each in self._book.live(now)
            ],
            "projected_load": [
                {"time": iso(begin), "load": self._load(begin, end, now)}
                for begin, end in pairwise(bounds)
                if begin < end
            ],
        }

    def _job(self, job: int, start: int, end: int) -> dict[str, Any]:
        """One job of a snapshot; `start` and `end` in log time."""
        user = int(self._replay.user_id[job])
        return {
            "job": int(self._replay.job_number[job]),
            "cores": int(self._replay.cores[job]),
            "start": iso(self.clock.instant(start)),
            "end": iso(self.clock.instant(end)),
            "submitted": iso(self.clock.instant(int(self._replay.submitted[job]))),
            "user": user if user >= 0 else None,
        }

    def _answer(self, key: str, now: Instant) -> Reservation | Refusal:
        """What stands under a key, or why nothing does."""
        entry = self._book.entry(key)
        standing = self._book.standing(key, now)
        if entry is not None and entry.reservation is not None and standing in {Standing.HELD, Standing.FIRM}:
            return entry.reservation
        unit = entry.unit if entry is not None else 0
        if standing is Standing.RELEASED:
            return Refusal(unit, RefusalCode.CANCELLED, detail=f"{key} was released")
        reason = "was never held" if entry is None else "is no longer held: its time ran out"
        return Refusal(unit, RefusalCode.HOLD_EXPIRED, detail=f"{key} {reason}")

    def _taken(self, slot: Slot, now: Instant) -> str:
        """Why a slot cannot be had any more; empty if it can."""
        start = max(slot.start, now)
        if start >= slot.end:
            return f"the slot ended at {iso(slot.end)}"
        if not 0 < slot.cores <= self.capacity:
            raise PluginError(
                NAME, f"a slot of {slot.cores} cores was never quoted: {self.resource} has {self.capacity}"
            )
        log_start, log_end = self.clock.log_time(start), self.clock.log_time(slot.end)
        free = self.capacity - self._state(now)[1].profile(log_end).max_over(log_start, max(log_end, log_start + 1))
        return "" if slot.cores <= free else f"{slot.cores} cores are wanted, {free} are left over the whole slot"

    def _first_free(
        self, cores: int, duration: Duration, earliest: Instant, latest: Instant | None, now: Instant
    ) -> Instant | None:
        """First start in [earliest, latest] (None = any later one) with the cores free throughout."""
        plan = self._state(now)[1]
        log_earliest, log_duration = self.clock.log_time(earliest), self.clock.log_duration(duration)
        if latest is None:
            found = plan.profile().earliest_start(cores, log_duration, log_earliest)
        else:
            log_latest = self.clock.log_time(latest)
            profile = plan.profile(log_latest + log_duration)
            found = profile.earliest_start(cores, log_duration, log_earliest, log_latest)
        if found is None:
            return None
        start = max(earliest, self.clock.instant(found))
        return start if latest is None or start <= latest else None

    def _load(self, start: Instant, end: Instant, now: Instant) -> float:
        """Share of the machine taken over [start, end) in the time-mean."""
        log_start, log_end = self.clock.log_time(start), self.clock.log_time(end)
        profile = self._state(now)[1].profile(log_end)
        return profile.mean_over(log_start, max(log_end, log_start + 1)) / self.capacity

    def _state(self, now: Instant) -> tuple[QueueState, QueuePlan]:
        """What runs and waits now, and the plan of it.

        The log's events fall on whole seconds, so all answers within one second of the log share one plan.
        """
        live = self._book.live(now)
        second = self.clock.log_time(now) // SECOND * SECOND
        if self._plan is None or self._plan_key is None or self._plan_key[0] != second or self._plan_key[1] is not live:
            state = self._replay.state_at(second)
            plan = QueuePlan(
                now=second,
                capacity=self.capacity,
                running=(self._replay.cores[state.running], self._replay.projected_ends(state.running, second)),
                queued=(self._replay.cores[state.queued], self._replay.requested[state.queued]),
                reserved=[self._window(each.slot) for each in live],
            )
            self._plan, self._plan_key = (state, plan), (second, live)
        return self._plan

    def _window(self, slot: Slot) -> ReservedWindow:
        start = self.clock.log_time(slot.start)
        return ReservedWindow(start, max(self.clock.log_time(slot.end), start + 1), slot.cores)


def open_plugin(settings: PluginSettings) -> FakeQstat:
    """The entry point `fake_qstat` of the group `ramp.resource_plugins`; see `FakeQstat`."""
    return FakeQstat(settings)


def _iso_or_empty(instant: Instant | None) -> str:
    """An instant as text; empty where there is none or it lies behind the calendar's end."""
    try:
        return "" if instant is None else iso(instant)
    except OverflowError:
        return ""


class _Options:
    """The plug-in's options, checked."""

    def __init__(self, resource: str, options: Mapping[str, Any]) -> None:
        self._resource = resource
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            raise ConfigurationError(f"unknown; {NAME} knows {', '.join(_OPTIONS)}", key=f"{resource}.{unknown[0]}")
        log = options.get("log")
        if not isinstance(log, str) or not log:
            raise self._wrong("log", log, "the name or path of a workload log, or 'synthetic', is wanted")
        self.log = log
        base_time = options.get("base_time_s", 0)
        if not isinstance(base_time, int) or isinstance(base_time, bool) or base_time < 0:
            raise self._wrong("base_time_s", base_time, "whole seconds from the log's first submission are wanted")
        self.base_time: Duration = base_time * SECOND
        self.speed = Fraction(str(self._number(options, "speed", 1)))
        if self.speed < 1:
            raise self._wrong("speed", options["speed"], "1 (wall speed) or more is wanted")
        self.synthetic_load = float(self._number(options, "synthetic_load", DEFAULT_LOAD))
        if self.synthetic_load <= 0:
            raise self._wrong("synthetic_load", options["synthetic_load"], "a number above 0 is wanted")

    def _number(self, options: Mapping[str, Any], key: str, default: float) -> float:
        value = options.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e9 < value < 1e9:
            raise self._wrong(key, value, "a number is wanted")
        return value

    def _wrong(self, key: str, value: object, wanted: str) -> ConfigurationError:
        return ConfigurationError(f"is {value!r}; {wanted}", key=f"{self._resource}.{key}")
