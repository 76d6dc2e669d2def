"""A queue behind a Resource Agent that cannot be reserved: a hold is a held job, and is let go when it is bought.

What is offered is the probability with which a job that joins the queue now starts early enough to be complete by the
end of its window (`ramp.model.probable_start`). A hold is written to the book first, then submitted, then read back by
its name; what is bought is written down as firm before it is let go, so that after a crash it is let go again. The job
keeps its cores for as long as was bought. Where the site launches jobs it is submitted as the buyer's local account,
and runs what that orders (`ramp.launching.queue_script`); else it is the agent's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from ramp.batch.book import Entry, HoldBook
from ramp.batch.machine import SNAPSHOT_AGE_S, job_shown
from ramp.batch.reconciling import reservation_name
from ramp.batch.system import SystemSnapshot
from ramp.batch.waiting.job_queue import JobQueue, OwnJob, Standing, WantedJob
from ramp.batch.waiting.learning import QueueLearning
from ramp.errors import AnswerUnreadable, BatchSystemError, PluginError, SystemRefused
from ramp.launching.acting import Acting
from ramp.launching.queue_script import queue_script
from ramp.model.instant import SECOND, Duration, Instant, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.probable_start import QUEUE_WAIT_MAX
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.snapshot import reservation_shown
from ramp.plugins.windows import window_refusal

Answer = TypeVar("Answer")

KEEPING: Final = "#!/bin/sh\n# keeps what was bought for as long as it was bought\nexec sleep {seconds}\n"
"""What a job runs where the site says nothing else."""


class QueueBoundMachine:
    """A queue whose starts are sold; a `ramp.plugins.interface.ResourcePlugin` that also forgets.

    Args:
        queue: the live queue.
        resource: the resource's name.
        cores: of the queue's nodes, as the configuration says.
        sellable: cores that jobs of the market may want together at any time.
        learning: what is known of the queue.
        state_dir: folder of the book; None for memory.
        script: what a job of the agent's own runs; `{seconds}` stands for how long it was bought.
        acting: by what buyers' accounts are acted as; None where all jobs are the agent's own.
        snapshot_age_s: seconds for which one picture serves.
        monotonic: seconds that pass, for the picture's age.

    Raises:
        PluginError: the book cannot be read.
    """

    def __init__(
        self,
        queue: JobQueue,
        resource: str,
        cores: int,
        sellable: int,
        learning: QueueLearning,
        state_dir: Path | None,
        *,
        script: str = KEEPING,
        acting: Acting | None = None,
        snapshot_age_s: float = SNAPSHOT_AGE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.queue = queue
        self.source = queue.source
        self.resource = resource
        self.capacity = cores
        self.book = HoldBook(state_dir, resource)
        self.learning = learning
        self._sellable = sellable
        self._script = script
        self._acting = acting
        self._snapshot_age_s = snapshot_age_s
        self._monotonic = monotonic
        self._picture: tuple[float, SystemSnapshot] | None = None

    def picture(self, now: Instant) -> SystemSnapshot:
        """The queue, at most `snapshot_age_s` old; a new picture is learnt from.

        Raises:
            BatchSystemError: it cannot be asked.
        """
        at = self._monotonic()
        if self._picture is None or not 0 <= at - self._picture[0] < self._snapshot_age_s:
            self._picture = at, self.queue.look(now)
            self.learning.look(self._picture[1], now)
        return self._picture[1]

    # -- the interface of plug-ins -------------------------------------------------------------------------------

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """The latest start of the window, and with which probability a job starts by then."""
        if unit.cores.total > self._sellable:
            detail = f"{unit.cores.total} cores are wanted, {self._sellable} of {self.capacity} are for sale"
            return Refusal(unit.number, RefusalCode.MACHINE_TOO_SMALL, f"{self._sellable} cores", detail)
        if refusal := window_refusal(unit, now):
            return refusal
        duration = unit.run_duration(now)
        begin = unit.earliest_start(now)
        latest = min(unit.deadline - duration, max(begin, now + QUEUE_WAIT_MAX))
        if taken := self._taken(unit.cores.total, now):
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, detail=taken)
        picture = self._told(lambda: self.picture(now))
        chance = self.learning.chance(unit.cores.total, duration, begin, latest, now)
        if chance is None or chance <= 0:
            known = f"none of the {self.learning.waits} waits seen here is similar enough"
            detail = known if chance is None else f"no similar job started within {seconds(latest - begin):g} s"
            return Refusal(unit.number, RefusalCode.START_PROBABILITY, detail=detail)
        ours = {each.reservation_id for each in self.book.live(now)}
        busy = sum(job.cores for job in picture.running if job.job_id not in ours) + self._bought(now)
        load = min(busy / self.capacity, 1.0)
        return Slot(latest, latest + duration, unit.cores.total, load, start_probability=chance)

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        """Submit a held job of the agent's own; see `ResourcePlugin.hold`."""
        return self.hold_for("", key, unit, slot, until, now)

    def hold_for(
        self, account: str, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Reservation | Refusal:
        """Submit a held job of the buyer's; see `HoldingForPlugin.hold_for`."""
        entry = self.book.entry(key)
        if entry is None:
            if until <= now:
                detail = f"the hold would have ended at {iso(until)}"
                return Refusal(unit.number, RefusalCode.HOLD_EXPIRED, detail=detail)
            self._sweep(now)
            if taken := self._taken(slot.cores, now):
                return Refusal(unit.number, RefusalCode.SLOT_TAKEN, detail=taken)
            name = reservation_name(self.resource, key)
            owner = account if self._acting is not None else ""
            entry = Entry(key, name, "", unit.number, slot, (("", slot.cores),), until, account=owner)
            self.book.intend(entry)
        if entry.live(now) and not entry.made:
            try:
                self._told(lambda: self._submit(entry, unit))
            except _Refused as refused:
                self.book.drop(key)
                return Refusal(unit.number, RefusalCode.SLOT_TAKEN, detail=refused.reason)
        return self.book.answer(key, now)

    def _submit(self, entry: Entry, unit: RequestUnit) -> None:
        """Have the system hold exactly one job of the entry's name."""
        if self._one(entry) is None:
            assert entry.slot is not None
            length = entry.slot.end - entry.slot.start
            script = self._script_for(entry, -(-length // SECOND))
            self.queue.submit(WantedJob(entry.name, unit.cores, length, unit.not_before, script, entry.account))
            if self._one(entry) is None:
                raise BatchSystemError(f"the job {entry.name} was submitted and is not in the queue")

    def _script_for(self, entry: Entry, length_s: int) -> str:
        if self._acting is None or not entry.account:
            return self._script.replace("{seconds}", str(length_s))
        return queue_script(self._acting.shell_folder(entry.account), entry.key, length_s)

    def _one(self, entry: Entry) -> OwnJob | None:
        """The entry's job; of several, as after an order that came late, all but the first are deleted."""
        found = self.queue.find(entry.name, entry.account)
        there = [job for job in found if job.standing is not Standing.GONE]
        if entry.made:
            there.sort(key=lambda job: job.job_id != entry.reservation_id)
        for job in there[1:]:
            self.queue.delete(job.job_id, entry.account)
        if not there or (entry.made and there[0].job_id != entry.reservation_id):
            return None
        if not entry.made:
            self.book.change(entry.key, made=True, reservation_id=there[0].job_id)
        return there[0]

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Let the job take its turn; see `ResourcePlugin.confirm`."""
        entry = self.book.entry(key)
        if entry is not None and entry.stands(now) and not entry.firm:
            held = entry
            job = self._told(lambda: self._one(held))
            if job is None:
                self.book.release(key)
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=f"the held job of {key} is gone")
            firm = self.book.change(key, firm=True)
            self._told(lambda: self._followed(firm, job))
        return self.book.answer(key, now)

    def _followed(self, entry: Entry, job: OwnJob) -> None:
        """Let a bought job go that is held still, and note its start."""
        if job.standing is Standing.HELD:
            self.queue.let_go(job.job_id, entry.account)
        elif job.started_at is not None and entry.started is None:
            self.book.change(entry.key, started=job.started_at)

    def release(self, key: str, now: Instant) -> None:
        """Delete the job; see `ResourcePlugin.release`."""
        entry = self.book.release(key)
        if entry is not None and entry.name and not entry.removed:
            self._told(lambda: self._remove(entry))

    def _remove(self, entry: Entry) -> None:
        for job in self.queue.find(entry.name, entry.account):
            if job.standing is not Standing.GONE:
                self.queue.delete(job.job_id, entry.account)
        self.book.change(entry.key, removed=True)

    def _sweep(self, now: Instant) -> None:
        """Delete what nobody holds any more."""
        for entry in self.book.to_remove(now):
            self._told(lambda entry=entry: self._remove(entry))  # type: ignore[misc]

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """What the book has under a key and the queue too, and since when its job runs."""
        entry = self.book.entry(key)
        if entry is None or not entry.stands(now):
            return None
        if entry.live(now) and entry.started is None:
            self._told(lambda: self.picture(now))  # a job is followed for hours, in which its queue teaches
            job = self._told(lambda: self._one(entry))
            if job is None:
                return None
            if entry.firm:
                self._told(lambda: self._followed(entry, job))
        found = self.book.answer(key, now)
        return found if isinstance(found, Reservation) else None

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """All live holds and bought jobs, by their latest starts; see `ResourcePlugin.reservations`."""
        return self.book.reservations(now)

    def next_event(self, now: Instant) -> Instant | None:
        """When the next hold runs out; see `ResourcePlugin.next_event`."""
        return self.book.next_expiry(now)

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        """Forget keys that are over; see `ForgettingPlugin.forget`."""
        self._sweep(now)
        self.book.forget(keys, now)

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """The queue as `ramp qstat` shows it; see `ResourcePlugin.snapshot`."""
        picture = self._told(lambda: self.picture(now))
        running = [
            job_shown(job.job_id, job.cores, job.start, job.end, job.submitted, job.user, now)
            for job in picture.running
        ]
        waiting = [
            job_shown(job.job_id, job.cores, max(job.planned_start or now, now), None, job.submitted, job.user, now)
            for job in picture.waiting
        ]
        busy = min(sum(job.cores for job in picture.running), self.capacity)
        load = busy / self.capacity
        return {
            "resource": self.resource,
            "source": self.source,
            "time": iso(now),
            "machine_time_s": now / SECOND,
            "picture_age_s": max(now - picture.taken_at, 0) / SECOND,
            "cores": self.capacity,
            "cores_busy": busy,
            "load": load,
            "running": running,
            "queued": waiting,
            "reservations": [reservation_shown(each.reservation()) for each in self.book.live(now)],
            "projected_load": [{"time": iso(now), "load": load}],
        }

    # -- common --------------------------------------------------------------------------------------------------

    def _bought(self, now: Instant) -> int:
        """Cores that jobs of the market want or have."""
        return sum(each.slot.cores for each in self.book.live(now) if each.slot is not None)

    def _taken(self, cores: int, now: Instant) -> str:
        """Why no further job may join the queue; empty if one may."""
        bought = self._bought(now)
        if bought + cores <= self._sellable:
            return ""
        return f"the market's jobs already use {bought} cores of at most {self._sellable}"

    def _told(self, act: Callable[[], Answer]) -> Answer:
        """Act on the queue; what fails is told as plug-ins tell it.

        Raises:
            _Refused: a sure no.
            PluginError: anything else that the system does.
        """
        try:
            return act()
        except SystemRefused as refused:
            raise _Refused(self.queue.name, refused.reason, transient=False) from refused
        except (AnswerUnreadable, BatchSystemError) as error:
            raise PluginError(self.queue.name, error.reason, transient=error.transient) from error


class _Refused(PluginError):
    """The system's sure no."""
