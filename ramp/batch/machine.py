"""The plug-in for any batch system: quotes from its live state, holds as its reservations.

`ramp.batch.system.BatchSystem` hides the differences between systems; the code here is common to them. A hold is
written to the book, then made, then read back; only a reservation seen as wanted is answered. After an error the book
has the intention and the system the result.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ramp.batch.availability import NEVER, Availability, Taking, takings_of
from ramp.batch.book import Entry, HoldBook
from ramp.batch.for_sale import ForSale
from ramp.batch.inspecting import Remark
from ramp.batch.node_lists import parts_of, placement_of, token_of
from ramp.batch.places import Places
from ramp.batch.reconciling import Reconciler, own_prefix, reservation_name
from ramp.batch.system import FOREVER, BatchSystem, Limits, Node, Parts, SystemSnapshot
from ramp.batch.tending import SoldSlots
from ramp.errors import BatchSystemError, PluginError, SystemRefused
from ramp.model.instant import SECOND, Duration, Instant, iso, seconds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.plugins.answers import iso_or_empty, run_window
from ramp.plugins.interface import PluginSettings, ResourcePlugin
from ramp.plugins.snapshot import machine_shown

SNAPSHOT_AGE_S: Final = 3.0
CONDITIONS_AGE_S: Final = 300.0
"""Seconds for which one successful check of the conditions for sales serves."""


class BookedMachine(ResourcePlugin):
    """The common part of plug-ins that keep their holds in a book.

    Args:
        name: of the system, in messages.
        settings: of the plug-in; every quote looks up how many cores the system really has.
        snapshot_age_s: seconds for which one picture serves.
        monotonic: a monotonic clock in seconds, for the picture's age.
    """

    def __init__(
        self, name: str, settings: PluginSettings, snapshot_age_s: float, monotonic: Callable[[], float]
    ) -> None:
        self.name = name
        self.resource = settings.resource
        self.capacity = settings.cores
        self.book = HoldBook(settings.state_dir, settings.resource)
        self._snapshot_age_s = snapshot_age_s
        self._monotonic = monotonic
        self._picture: tuple[float, SystemSnapshot] | None = None

    @abstractmethod
    def _look(self, now: Instant) -> SystemSnapshot:
        """Take a new picture of the system."""

    def picture(self, now: Instant) -> SystemSnapshot:
        """Return a picture of the system, at most `snapshot_age_s` old; `BatchSystemError` if it cannot be asked."""
        at = self._monotonic()
        if self._picture is None or not 0 <= at - self._picture[0] < self._snapshot_age_s:
            self._picture = at, self._look(now)
        return self._picture[1]

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        return self.book.reservations(now)

    # -- promises ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _wanted(
        self, account: str, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Entry | str:
        """Return the entry to write for a new hold, or why the slot is not free."""

    @abstractmethod
    def _make(self, entry: Entry, unit: RequestUnit, now: Instant) -> None:
        """Make a hold on the system, as its entry promises."""

    @abstractmethod
    def _check_held(self, entry: Entry, now: Instant) -> None:
        """Raise a `SystemRefused` if the system has not what an entry promises, and cannot have it any more."""

    @abstractmethod
    def _remove(self, entry: Entry) -> None:
        """Remove what the system has for an entry, and record that."""

    @abstractmethod
    def _sweep(self, now: Instant) -> None:
        """Remove what the system has for entries that are over."""

    def _on_refused(self, refused: SystemRefused, now: Instant) -> None:
        """Draw conclusions from the refusal of a hold."""

    def _on_firm(self, entry: Entry) -> None:
        """Do what a sale needs beside its entry."""

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        return self.hold_for("", key, unit, slot, until, now)

    def hold_for(
        self, account: str, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Reservation | Refusal:
        entry = self.book.entry(key)
        if entry is None:
            if until <= now:
                detail = f"the hold would have ended at {iso(until)}"
                return Refusal(unit.number, RefusalCode.HOLD_EXPIRED, detail=detail)
            wanted = self._wanted(account, key, unit, slot, until, now)
            if isinstance(wanted, str):
                return Refusal(unit.number, RefusalCode.SLOT_TAKEN, detail=wanted)
            entry = wanted
            self.book.intend(entry)
        if entry.live(now) and not entry.made:
            try:
                self._make(entry, unit, now)
            except SystemRefused as refused:
                self.book.drop(key)
                if refused.transient:
                    raise
                self._on_refused(refused, now)
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=refused.reason)
        return self.book.answer(key, now)

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Make a hold firm once the system is seen to have it; see `ResourcePlugin.confirm`."""
        entry = self.book.entry(key)
        if entry is not None and entry.stands(now) and not entry.firm:
            try:
                self._check_held(entry, now)
            except SystemRefused as refused:
                if refused.transient:
                    raise
                self.book.release(key)
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=refused.reason)
            self._on_firm(self.book.change(key, firm=True))
        return self.book.answer(key, now)

    def release(self, key: str, now: Instant) -> None:
        entry = self.book.release(key)
        if entry is not None and entry.name and not entry.removed:
            self._remove(entry)

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        self._sweep(now)
        self.book.forget(keys, now)

    @abstractmethod
    def _projected_load(self, now: Instant) -> Callable[[Instant, Instant], float]:
        """Return the mean load from one instant to a later one."""

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        picture, load = self.picture(now), self._projected_load(now)
        waiting = []
        for job in picture.waiting:
            begin = max(job.planned_start or now, now)
            end = None if job.time_limit is None else begin + job.time_limit
            waiting.append(job_shown(job.job_id, job.cores, begin, end, job.submitted, job.user, now))
        shown = machine_shown(
            self.resource,
            self.source,
            self.capacity,
            [each.reservation() for each in self.book.live(now)],
            now,
            horizon,
            load=load,
            busy=self.capacity - min(picture.free_cores, self.capacity),
            running=[
                job_shown(job.job_id, job.cores, job.start, job.end, job.submitted, job.user, now)
                for job in picture.running
            ],
            queued=waiting,
        )
        return {**shown, "picture_age_s": max(now - picture.taken_at, 0) / SECOND}


class BatchMachine(BookedMachine):
    """A batch system behind a Resource Agent.

    Args:
        for_sale: the site's choice.
        spare_planned: whether jobs that the system plans to start keep their places in quotes.
        places: chooses nodes for requests with terms for tori; None if the system is no torus.
        conditions: checks the conditions for sales; nothing is offered while one of its remarks is a finding.
        wait: waits the given seconds.

    Raises:
        PluginError: the book cannot be read, or the system cannot be asked (then it may work later).
    """

    tended = True

    def __init__(
        self,
        system: BatchSystem,
        settings: PluginSettings,
        for_sale: ForSale,
        *,
        spare_planned: bool = True,
        snapshot_age_s: float = SNAPSHOT_AGE_S,
        places: Places | None = None,
        conditions: Callable[[Instant], Sequence[Remark]] = lambda _: (),
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(system.name, settings, snapshot_age_s, monotonic)
        self.system = system
        self.for_sale = for_sale
        self.reconciler = Reconciler(system, self.book, self.resource, wait)
        self._spare_planned = spare_planned
        self._places = places
        self._conditions = conditions
        self._checked_at: float | None = None
        self._not_selling = ""
        self._wanting: dict[str, float] = {}
        """Since when sold slots are not as they should be, for their tending."""
        self._drawn: tuple[SystemSnapshot, object, Availability] | None = None

    def begin(self, now: Instant) -> None:
        """Make the system agree with the book, as at every start: remove reservations without a holder.

        Raises:
            PluginError: the system cannot be asked now, or nothing is sold and a condition for sales is not met.
        """
        self._sweep(now)
        if not self.book.live(now):  # else the sold slots are looked after, and `tend` checks
            self._check_conditions(now)

    def _check_conditions(self, now: Instant) -> None:
        """Check the conditions for sales, if the last success was long ago.

        Raises:
            PluginError: the first finding, in the words of `ramp doctor`.
        """
        at = self._monotonic()
        if self._checked_at is not None and 0 <= at - self._checked_at < CONDITIONS_AGE_S:
            return
        self._checked_at = None
        findings = [f"{each.says}; {each.do}" for each in self._conditions(now) if each.is_finding]
        self._not_selling = "".join(findings[:1])
        if findings:
            raise PluginError(self.system.name, self._not_selling, transient=True)
        self._checked_at = at

    # -- pictures ------------------------------------------------------------------------------------------------

    def _look(self, now: Instant) -> SystemSnapshot:
        return self.system.snapshot(now)

    def availability(self, now: Instant, without: str = "") -> Availability:
        """Return the availability from now on.

        Args:
            now: begin of the table.
            without: a key whose own cores count as free.

        Raises:
            BatchSystemError: the system cannot be asked.
        """
        picture = self.picture(now)
        live = tuple(each for each in self.book.live(now) if each.key != without)
        mark = live, now // SECOND
        drawn = self._drawn  # with its picture, because a later one may get the id of one that is gone
        if drawn is None or drawn[0] is not picture or drawn[1] != mark:
            drawn = self._drawn = picture, mark, self._draw(picture, live, now)
        return drawn[2]

    def _draw(self, picture: SystemSnapshot, live: Sequence[Entry], now: Instant) -> Availability:
        # our reservations without a holder will be removed soon, so they take nothing
        prefix = own_prefix(self.resource)
        own = frozenset(each.name for each in picture.reservations if each.name.startswith(prefix))
        takings = takings_of(picture, own, spare_planned=self._spare_planned)
        for entry in live:
            end = -(-entry.slot.end // SECOND) * SECOND
            takings.append(Taking(entry.slot.start // SECOND * SECOND, end, entry.parts, market=True))
        backlog = sum(
            job.cores * (job.time_limit or FOREVER)
            for job in picture.waiting
            if not job.held and not job.reservation and (job.planned_start is None or not job.planned_nodes)
        )
        return Availability(picture.nodes, takings, now, self.for_sale, backlog, picture.limits)

    # -- the interface of plug-ins -------------------------------------------------------------------------------

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        if isinstance(window := run_window(unit, self.for_sale.cores(self.capacity), now), Refusal):
            return window
        earliest, duration = window
        latest = unit.deadline - duration
        never = None if self._places is None or unit.torus is None else self._places.refused(unit)
        return never or self._quoted(unit, duration, earliest, latest, now)

    def _quoted(
        self, unit: RequestUnit, duration: Duration, earliest: Instant, latest: Instant, now: Instant
    ) -> Slot | Refusal:
        self._check_conditions(now)
        limits = self.picture(now).limits
        if limits.closed:
            raise BatchSystemError(limits.closed)
        if beyond := beyond_limits(limits, unit, duration):
            return beyond
        free = self.availability(now)
        places = self._places
        choose = None if places is None or unit.torus is None else partial(places.choose, unit)
        if unit.gpus_per_node is not None:
            if choose is not None:
                return Refusal(
                    unit.number, RefusalCode.TORUS, "no torus terms", "this machine sells no shapes with GPUs"
                )
            if lacking := gpu_refusal(unit, self.picture(now).nodes):
                return lacking
            choose = partial(free.whole_nodes, unit)
        fit = free.first_fit(unit.cores, duration, earliest, latest, now=now, choose=choose)
        if fit is None:
            later = free.first_fit(unit.cores, duration, earliest, NEVER - duration, now=now, choose=choose)
            detail = (
                f"{unit.cores.total} of {self.capacity} cores are not free and for sale together for "
                f"{seconds(duration):g} s between {iso(earliest)} and {iso_or_empty(unit.deadline)}"
            )
            nearest = iso_or_empty(None if later is None else later[0])
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, nearest, detail)
        start, parts = fit
        end = start + duration
        cores = sum(count for _, count in parts)
        return Slot(start, end, cores, free.load(start, end), placement_of(parts), token_of(parts))

    def _wanted(
        self, account: str, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Entry | str:
        del account  # the slot is handed over once it is sold
        parts = self._parts(slot)
        if taken := self._taken(slot, parts, now):
            return taken
        shaped = isinstance(unit.cores, Nodes) or unit.torus is not None
        name = reservation_name(self.resource, key)
        return Entry(key, name, "", unit.number, slot, parts, until, shaped=shaped)

    def _make(self, entry: Entry, unit: RequestUnit, now: Instant) -> None:
        del unit
        self.reconciler.make(entry, now)

    def _on_refused(self, refused: SystemRefused, now: Instant) -> None:
        self._picture = None  # it is out of date: others have taken the cores
        if not refused.busy:
            self._checked_at = None
            self._check_conditions(now)

    def _check_held(self, entry: Entry, now: Instant) -> None:
        self.reconciler.make(entry, now)

    def _remove(self, entry: Entry) -> None:
        self.reconciler.remove(entry)

    def _sweep(self, now: Instant) -> None:
        self.reconciler.sweep(now)

    def tend(self, owners: Mapping[str, str], now: Instant) -> dict[str, str | SlotMove]:
        """Look after sold slots (`ramp.batch.tending`); while the system cannot be asked, nothing is lost."""
        self._sweep(now)
        self._picture = None  # reservations may have changed since
        picture = self.picture(now)
        before = self._moves(owners)
        sold = SoldSlots(self.book, self.reconciler, self.elsewhere, self._monotonic, self._wanting, picture, now)
        lost = sold.tend(owners)
        found = {**self._moves(owners), **lost}
        if found == before:  # report news first: a failure will be found again
            sold.check()
            self._check_conditions(now)
        return found

    def _moves(self, keys: Iterable[str]) -> dict[str, str | SlotMove]:
        found: dict[str, str | SlotMove] = {}
        for key in keys:
            entry = self.book.entry(key)
            if entry is not None and entry.moved_at is not None:
                found[key] = SlotMove(entry.slot.placement, entry.moved_at, entry.reservation_id)
        return found

    def elsewhere(self, entry: Entry, now: Instant) -> Parts:
        """Return other cores for a sold slot, free for all of it; empty if there are too few.

        Nodes of the same shape come first. A buyer that asked for cores also gets them on other nodes.

        Raises:
            BatchSystemError: the system cannot be asked.
        """
        if self._places is not None and len(entry.parts) > 1 and entry.shaped:
            return ()  # it may be a box, and other nodes would be none
        free, start, end = self.availability(now, without=entry.key), entry.slot.start, entry.slot.end
        found = free.like(entry.parts, start, end)
        return found if found or entry.shaped else free.more(entry.slot.cores, start, end)

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """Return what both book and system have under a key; see `ResourcePlugin.reservation`."""
        entry = self.book.entry(key)
        if entry is None or not entry.stands(now):
            return None
        if entry.live(now):
            found = self.reconciler.find(entry.name)
            if self.reconciler.fits(found, entry, now):
                assert found is not None
                entry = self.reconciler.note_made(entry, found, now)
            elif not entry.made:
                return None
            else:
                try:
                    entry = self.reconciler.make(entry, now)
                except SystemRefused:
                    return None
        return entry.reservation()

    def _projected_load(self, now: Instant) -> Callable[[Instant, Instant], float]:
        return self.availability(now).load

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        shown = super().snapshot(now, horizon)
        return {**shown, "not_selling": self._not_selling} if self._not_selling else shown

    # -- common --------------------------------------------------------------------------------------------------

    def _taken(self, slot: Slot, parts: Parts, now: Instant) -> str:
        """Remove expired holds, then say why a slot is no longer free; empty if it is."""
        start = max(slot.start, now)
        if start >= slot.end:
            return f"the slot ended at {iso(slot.end)}"
        if self.book.to_remove(now):
            self.reconciler.sweep(now)
        return self.availability(now).lacking(parts, start, slot.end)

    def _parts(self, slot: Slot) -> Parts:
        try:
            parts = parts_of(slot.token)
        except ValueError as error:
            raise PluginError(self.system.name, f"the slot was never quoted: {error}") from error
        if sum(count for _, count in parts) != slot.cores:
            raise PluginError(self.system.name, f"a slot of {slot.cores} cores was never quoted on {slot.placement}")
        return parts


def gpu_refusal(unit: RequestUnit, nodes: Iterable[Node]) -> Refusal | None:
    """Return the refusal of a unit with GPUs that too few nodes have, or None."""
    there = sum(node.has_gpus(unit) for node in nodes)
    if unit.gpus_per_node is None or not isinstance(unit.cores, Nodes) or there >= unit.cores.count:
        return None
    has = f"{there} node{'' if there == 1 else 's'} with {unit.gres}"
    return Refusal(unit.number, RefusalCode.GPUS, has, f"the machine has {has}")


def beyond_limits(limits: Limits, unit: RequestUnit, duration: Duration) -> Refusal | None:
    """Refuse a request that no job of this system could use."""

    def refused(code: RefusalCode, nearest: str, wanted: str) -> Refusal:
        return Refusal(unit.number, code, nearest, f"{wanted} wanted, a job here may have at most {nearest}")

    if limits.longest is not None and duration > limits.longest:
        longest = f"{seconds(limits.longest):g} s"
        return refused(RefusalCode.MACHINE_TOO_SMALL, longest, f"{seconds(duration):g} s are")
    if limits.cores is not None and unit.cores.total > limits.cores:
        return refused(RefusalCode.MACHINE_TOO_SMALL, f"{limits.cores} cores", f"{unit.cores.total} cores are")
    if limits.nodes is not None and isinstance(unit.cores, Nodes) and unit.cores.count > limits.nodes:
        return refused(RefusalCode.MACHINE_TOO_SMALL, f"{limits.nodes} nodes", f"{unit.cores.count} nodes are")
    return None


def job_shown(
    job_id: str, cores: int, start: Instant, end: Instant | None, submitted: Instant | None, user: str, now: Instant
) -> dict[str, Any]:
    """Return a job as in a plug-in's snapshot."""
    shown_end = max(start + SECOND, now, start + FOREVER if end is None else end)
    return {
        "job": job_id,
        "cores": cores,
        "start": iso(start),
        "end": iso(shown_end),
        "submitted": iso(start if submitted is None else submitted),
        "user": user,
    }
