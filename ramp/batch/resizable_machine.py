"""A batch system whose sold slots can change their size.

The book is written first, as for a hold. Then jobs are narrowed if necessary, the reservation is changed, and both are
read back. After a certain refusal, book and reservation stay as they were. After an unknown result the book keeps the
intention, and the next call or inspection of the sold slots makes the system agree with it.

Only jobs that the buyer submitted are narrowed. Jobs that the agent launched keep their nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from ramp.batch.book import Entry
from ramp.batch.machine import BatchMachine
from ramp.batch.node_lists import placement_of, token_of
from ramp.batch.system import Limits, Parts, RunningJob, SystemSnapshot
from ramp.errors import BatchSystemError, SystemRefused
from ramp.model.instant import SECOND, Instant, iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot


@dataclass(frozen=True, slots=True)
class SmallerSlot:
    """The result of making a slot smaller.

    Attributes:
        parts: the remaining cores, in the order of its nodes.
        jobs: jobs that must be narrowed first, with the number of nodes that each keeps.
    """

    parts: Parts
    jobs: tuple[tuple[str, int], ...] = ()


def smaller_slot(
    parts: Parts, cores: int, jobs: Sequence[RunningJob], *, whole: bool, kept: Collection[str] = ()
) -> SmallerSlot | None:
    """Return the rest of a slot; None if its jobs need more and cannot be narrowed.

    Nodes with jobs of the slot stay before others. If there are too many of them, the widest job gives up its last
    node, repeatedly: a batch system lets a job keep only its first nodes, in their order. Jobs that a Resource Agent
    launched give up no node, because it has reported their cores.

    Args:
        parts: its present cores.
        cores: its new size, at least 1 and fewer than now.
        jobs: that run in it.
        whole: whether nodes stay whole, if possible.
        kept: ids of jobs that are not narrowed.
    """
    narrowable = [job for job in jobs if job.job_id not in kept]
    order = {name: number for number, (name, _) in enumerate(parts)}
    nodes = {
        job.job_id: sorted((name for name, _ in job.parts if name in order), key=order.__getitem__) for job in jobs
    }
    narrowed: dict[str, int] = {}
    while True:
        taken = _taken(parts, jobs, nodes, whole=whole)
        if sum(taken.values()) <= cores:
            return SmallerSlot(_kept(parts, cores, taken), tuple(narrowed.items()))
        job = max(narrowable, key=lambda each: len(nodes[each.job_id]), default=None)
        if job is None or len(nodes[job.job_id]) < 2:
            return None
        nodes[job.job_id].pop()
        narrowed[job.job_id] = len(nodes[job.job_id])


def _taken(
    parts: Parts, jobs: Sequence[RunningJob], nodes: Mapping[str, Sequence[str]], *, whole: bool
) -> dict[str, int]:
    """Return the cores of each node that must stay for jobs narrowed to the given numbers of nodes."""
    had = dict(parts)
    taken: dict[str, int] = {}
    for job in jobs:
        for name, count in job.parts:
            if name in nodes[job.job_id]:
                taken[name] = had[name] if whole else min(taken.get(name, 0) + count, had[name])
    return taken


def _kept(parts: Parts, cores: int, taken: Mapping[str, int]) -> Parts:
    """Choose cores: those in use, the rest of their nodes, then as few other nodes as possible."""
    kept = dict(taken)
    left = cores - sum(taken.values())
    for name, count in parts:
        if name in kept:
            more = min(count - kept[name], left)
            kept[name] += more
            left -= more
    others = [part for part in parts if part[0] not in kept]
    while left:  # the smallest node that has all that is left, else the largest
        enough = [part for part in others if part[1] >= left]
        chosen = min(enough, key=itemgetter(1)) if enough else max(others, key=itemgetter(1))
        name, count = chosen
        others.remove(chosen)
        kept[name] = min(count, left)
        left -= kept[name]
    return tuple((name, kept[name]) for name, _ in parts if name in kept)


_log: Final = logging.getLogger(__name__)
_NAMED: Final = 5
"""Maximum number of jobs that a refusal names."""


class ResizableBatchMachine(BatchMachine):
    """A batch machine over a system that can change existing reservations."""

    def resize(self, key: str, step: int, cores: int, until: Instant, now: Instant) -> Reservation | Refusal:
        entry = self.book.entry(key)
        if entry is None or not entry.firm or not entry.stands(now):
            answer = self.book.answer(key, now)
            if isinstance(answer, Refusal):
                return answer
            return Refusal(0, RefusalCode.HOLD_EXPIRED, detail=f"{key} is held but not firm")
        same = (entry.slot.cores, entry.slot.end) == (cores, until)
        if step < entry.step:
            return _refused(entry, f"{key} was changed by step {entry.step} since")
        if step == entry.step and not same:
            return _refused(entry, f"step {step} of {key} was another change")
        if not same:
            return self._resized(entry, step, cores, until, now)
        if step > entry.step:
            entry = self.book.change(key, step=step)
        if entry.live(now):
            try:
                self.reconciler.change(entry, now, anew=False)
            except SystemRefused as refused:
                return _refused(entry, refused.reason)
        return self.book.answer(key, now)

    def _resized(self, entry: Entry, step: int, cores: int, until: Instant, now: Instant) -> Reservation | Refusal:
        self._picture = None
        picture = self.picture(now)
        planned = self._planned(entry, cores, until, picture, now)
        if isinstance(planned, str):
            return _refused(entry, planned)
        slot = replace(
            entry.slot,
            cores=cores,
            end=until,
            placement=placement_of(planned.parts),
            token=token_of(planned.parts),
        )
        moved_at = entry.moving(now) if slot.placement != entry.slot.placement else entry.moved_at
        after = self.book.change(entry.key, slot=slot, parts=planned.parts, step=step, moved_at=moved_at)
        try:
            self._changed(after, planned, anew=self._may_be_made_anew(entry, picture, now), now=now)
        except SystemRefused as refused:
            self._put_back(entry, now)
            if refused.transient:
                raise
            return _refused(entry, refused.reason)
        finally:
            self._picture = None
        return self.book.answer(entry.key, now)

    def _changed(self, after: Entry, planned: SmallerSlot, *, anew: bool, now: Instant) -> None:
        """Make the system agree with the book, and check that no job remains on released cores.

        Raises:
            SystemRefused: the system refuses.
            BatchSystemError: the result is unknown.
        """
        if not after.live(now):
            self.reconciler.remove(after)
            return
        for job, nodes in planned.jobs:
            self.system.narrow_job(job, nodes)
        self.reconciler.change(after, now, anew=anew)
        left = _outside(after, self.system.snapshot(now))
        if left:
            raise SystemRefused(f"{_jobs(left)} still runs on nodes that the change would release")

    def _put_back(self, entry: Entry, now: Instant) -> None:
        """Restore the slot's previous size in the book, and on the system if that has changed."""
        book = self.book
        book.change(entry.key, slot=entry.slot, parts=entry.parts, step=entry.step, moved_at=entry.moved_at)
        if not entry.live(now):
            return
        try:
            self.reconciler.make(entry, now)
        except BatchSystemError as error:
            _log.warning("%s cannot have its old size again now: %s", entry.name, error)

    def _planned(
        self, entry: Entry, cores: int, until: Instant, picture: SystemSnapshot, now: Instant
    ) -> SmallerSlot | str:
        slot = entry.slot
        several = len(entry.parts) > 1 or cores > slot.cores
        if cores != slot.cores and self._places is not None and several:
            return "its nodes may form a box of the torus; only its end can be changed"
        inside = [job for job in picture.running if job.reservation == entry.name]
        planned = SmallerSlot(entry.parts)
        if cores < slot.cores:
            launched = self.system.launched_in(entry.name) if inside else frozenset()
            smaller = self._smaller(entry, cores, inside, picture, kept=launched)
            if smaller is None:
                return f"{_jobs(inside)} has more than {cores} cores of it, and cannot be narrowed to them"
            planned = smaller
        if until > slot.end:
            longer = self._longer(slot, planned.parts, until, picture.limits, inside, now)
            if longer:
                return longer
        if cores > slot.cores:
            begin = max(slot.start, now) // SECOND * SECOND
            more = self.availability(now).more(cores - slot.cores, begin, until)
            if not more:
                return f"{cores - slot.cores} cores more are not free and for sale until {iso(until)}"
            planned = SmallerSlot(_together(entry.parts, more, picture))
            limits = picture.limits
            if cores > (limits.cores or cores) or len(planned.parts) > (limits.nodes or len(planned.parts)):
                return f"{cores} cores on {len(planned.parts)} nodes are more than a job here may have"
        return planned

    def _smaller(
        self,
        entry: Entry,
        cores: int,
        inside: list[RunningJob],
        picture: SystemSnapshot,
        *,
        kept: frozenset[str],
    ) -> SmallerSlot | None:
        """Return the remaining cores: whole nodes of a slot of whole nodes, because jobs allow changing those."""
        sizes = {node.name: node.cores for node in picture.nodes}
        whole = all(count == sizes.get(name) for name, count in entry.parts)
        found = smaller_slot(entry.parts, cores, inside, whole=whole, kept=kept)
        return found or (smaller_slot(entry.parts, cores, inside, whole=False) if whole and not inside else None)

    def _longer(
        self, slot: Slot, parts: Parts, until: Instant, limits: Limits, inside: list[RunningJob], now: Instant
    ) -> str:
        if until > self.for_sale.latest_end(now):
            return f"nothing is for sale after {iso(self.for_sale.latest_end(now))}"
        longest = min(self.for_sale.longest, self.for_sale.longest if limits.longest is None else limits.longest)
        if until - slot.start > longest:
            return f"a slot may last at most {longest // SECOND} s"
        if not any(begin <= slot.end and until <= end for begin, end in self.for_sale.openings(slot.start, until)):
            return f"until {iso(until)} it would include hours that are not for sale"
        beyond = [job for job in inside if job.end is None or job.end > slot.end]
        if beyond:
            return f"the time limit of {_jobs(beyond)} already exceeds the slot's end; shorten it first"
        return self.availability(now).lacking(parts, slot.end, until)

    def _may_be_made_anew(self, entry: Entry, picture: SystemSnapshot, now: Instant) -> bool:
        """Whether a reservation may be absent for a moment: not if waiting jobs could start on its cores."""
        return entry.slot.start > now or not any(not job.held and not job.reservation for job in picture.waiting)


def _refused(entry: Entry, detail: str) -> Refusal:
    return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=detail)


def _outside(entry: Entry, picture: SystemSnapshot) -> list[RunningJob]:
    own = {name for name, _ in entry.parts}
    return [
        job
        for job in picture.running
        if job.reservation == entry.name and any(name not in own for name, _ in job.parts)
    ]


def _together(parts: Parts, more: Parts, picture: SystemSnapshot) -> Parts:
    cores = dict(parts)
    for name, count in more:
        cores[name] = cores.get(name, 0) + count
    return tuple((node.name, cores[node.name]) for node in picture.nodes if node.name in cores)


def _jobs(jobs: list[RunningJob]) -> str:
    named = ", ".join(job.job_id for job in jobs[:_NAMED])
    return f"job {named}" + (f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else "")
