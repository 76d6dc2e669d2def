"""The plug-in for a queue without reservations: a hold is a held job, released when it is bought.

An offer states the probability with which a job that joins the queue now starts early enough to be complete by the end
of its window (`ramp.model.probable_start`). A hold is written to the book, then submitted, then read back by its name.
A purchase is written down before its job is released, so that after a crash it is released again. The job keeps its
cores for the time bought. At sites that launch jobs it is submitted as the buyer's local account and runs the buyer's
orders (`ramp.launching.queue_script`); otherwise it is the agent's own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from ramp.batch.book import Entry
from ramp.batch.machine import SNAPSHOT_AGE_S, BookedMachine, beyond_limits, gpu_refusal
from ramp.batch.reconciling import reservation_name
from ramp.batch.system import SystemSnapshot
from ramp.batch.waiting.job_queue import JobQueue, OwnJob, Standing, WantedJob
from ramp.batch.waiting.learning import QueueLearning
from ramp.errors import BatchSystemError, SystemRefused
from ramp.launching.acting import Acting
from ramp.launching.queue_script import queue_script
from ramp.model.instant import SECOND, Duration, Instant, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.probable_start import QUEUE_WAIT_MAX
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.answers import run_window
from ramp.plugins.interface import PluginSettings

_log = logging.getLogger(__name__)

KEEPING: Final = "#!/bin/sh\n# keeps what was bought for as long as it was bought\nexec sleep {seconds}\n"
"""Script of a job if the site configures no other."""


class QueueBoundMachine(BookedMachine):
    """A queue whose starts are sold.

    Args:
        settings: of the plug-in; without a way to act as buyers' accounts all jobs are the agent's own.
        sellable: cores that jobs of the market may want together at any time.
        script: of the agent's own jobs; `{seconds}` in it is replaced by the time bought.

    Raises:
        PluginError: the book cannot be read.
    """

    def __init__(
        self,
        queue: JobQueue,
        settings: PluginSettings,
        sellable: int,
        learning: QueueLearning,
        *,
        script: str = KEEPING,
        snapshot_age_s: float = SNAPSHOT_AGE_S,
    ) -> None:
        super().__init__(queue.name, settings, snapshot_age_s, time.monotonic)
        self.queue = queue
        self.source = queue.source
        self.learning = learning
        self._sellable = sellable
        self._script = script
        self._acting = Acting.told(settings.acting)

    def _look(self, now: Instant) -> SystemSnapshot:
        picture = self.queue.look(now)
        self.learning.look(picture, now)
        return picture

    # -- the interface of plug-ins -------------------------------------------------------------------------------

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """Return the latest start of the window, and the probability that a job starts by then."""
        if isinstance(window := run_window(unit, self._sellable, now), Refusal):
            return window
        begin, duration = window
        latest = min(unit.deadline - duration, max(begin, now + QUEUE_WAIT_MAX))
        if taken := self._taken(unit.cores.total, now):
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, detail=taken)
        picture = self.picture(now)
        if picture.limits.closed:
            raise BatchSystemError(picture.limits.closed)
        if beyond := beyond_limits(picture.limits, unit, duration) or gpu_refusal(unit, picture.nodes):
            return beyond
        chance = self.learning.chance(unit.cores.total, duration, begin, latest, now)
        if chance is None or chance <= 0:
            known = f"none of the {self.learning.waits} waits seen here is similar enough"
            detail = known if chance is None else f"no similar job started within {seconds(latest - begin):g} s"
            return Refusal(unit.number, RefusalCode.START_PROBABILITY, detail=detail)
        ours = {each.reservation_id for each in self.book.live(now)}
        busy = sum(job.cores for job in picture.running if job.job_id not in ours) + self._bought(now)
        load = min(busy / self.capacity, 1.0)
        return Slot(latest, latest + duration, unit.cores.total, load, start_probability=chance)

    def _wanted(
        self, account: str, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Entry | str:
        self._sweep(now)
        if taken := self._taken(slot.cores, now):
            return taken
        name = reservation_name(self.resource, key)
        owner = account if self._acting is not None else ""
        return Entry(key, name, "", unit.number, slot, (("", slot.cores),), until, account=owner)

    def _make(self, entry: Entry, unit: RequestUnit, now: Instant) -> None:
        """Make the system hold exactly one job of the entry's name."""
        del now
        if self._one(entry) is None:
            length = entry.slot.end - entry.slot.start
            length_s = -(-length // SECOND)
            script = self._script.replace("{seconds}", str(length_s))
            if self._acting is not None and entry.account:
                script = queue_script(self._acting.shell_folder(entry.account), entry.key, length_s)
            self.queue.submit(
                WantedJob(entry.name, unit.cores, length, unit.not_before, script, entry.account, unit.gres)
            )
            if self._one(entry) is None:
                raise BatchSystemError(f"the job {entry.name} was submitted and is not in the queue")

    def _one(self, entry: Entry) -> OwnJob | None:
        """Return the entry's job; of several, as after a late order, delete all but the first."""
        found = self.queue.find(entry.name, entry.account, entry.reservation_id)
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

    def _check_held(self, entry: Entry, now: Instant) -> None:
        del now
        if self._one(entry) is None:
            raise SystemRefused(f"the held job of {entry.key} is gone")

    def _on_firm(self, entry: Entry) -> None:
        job = self._one(entry)
        if job is not None:
            self._followed(entry, job)

    def _followed(self, entry: Entry, job: OwnJob) -> None:
        if job.standing is Standing.HELD:
            self.queue.let_go(job.job_id, entry.account)
        elif job.started_at is not None and entry.started is None:
            self.book.change(entry.key, started=job.started_at)

    def _remove(self, entry: Entry) -> None:
        for job in self.queue.find(entry.name, entry.account, entry.reservation_id):
            if job.standing is not Standing.GONE:
                self.queue.delete(job.job_id, entry.account)
        self.book.change(entry.key, removed=True)

    def _sweep(self, now: Instant) -> None:
        for entry in self.book.to_remove(now):
            try:
                self._remove(entry)
            except BatchSystemError as error:  # tried again in the next sweep
                _log.warning("%s cannot be removed now: %s", entry.name, error)

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """Return what both book and queue have under a key, and record its job's start."""
        entry = self.book.entry(key)
        if entry is None or not entry.stands(now):
            return None
        if entry.live(now) and entry.started is None:
            self.picture(now)  # a job is followed for hours, in which its queue teaches
            job = self._one(entry)
            if job is None:
                return None
            if entry.firm:
                self._followed(entry, job)
        found = self.book.answer(key, now)
        return found if isinstance(found, Reservation) else None

    def _projected_load(self, now: Instant) -> Callable[[Instant, Instant], float]:
        load = 1 - min(self.picture(now).free_cores, self.capacity) / self.capacity
        return lambda _begin, _end: load

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        shown = super().snapshot(now, horizon)
        return {**shown, "projected_load": shown["projected_load"][:1]}  # of a queue without a plan no more is known

    # -- common --------------------------------------------------------------------------------------------------

    def _bought(self, now: Instant) -> int:
        return sum(each.slot.cores for each in self.book.live(now))

    def _taken(self, cores: int, now: Instant) -> str:
        """Say why no further job may join the queue; empty if one may."""
        bought = self._bought(now)
        if bought + cores <= self._sellable:
            return ""
        return f"the market's jobs already use {bought} cores of at most {self._sellable}"
