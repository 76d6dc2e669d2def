"""Look after sold slots on a batch system until they end: hand over, make again, move, or report as lost.

A slot is in trouble if one of its nodes is out of service, or if the system has lost its reservation and given the
cores to others. Healthy slots look so for some seconds after a restart, so trouble must last a minute. A system waits
some minutes for a silent node; its slots are not in trouble before it gives the node up. A slot that has not begun
moves to other free cores, at the last look before its begin even if the minute is not over. Without free cores, or
once it has begun, it is lost, and the resource pays it back. The reason of a loss says why the slot was not moved.

A moved slot keeps its key and its reservation's name, which is in the signed agreement and in the buyer's scripts and
cannot change. So the book is written first; then the old reservation is removed and the new one made under its name.
After a crash in between, that name makes the system agree with the book, as ever.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from ramp.batch.availability import NEVER
from ramp.batch.book import Entry, HoldBook
from ramp.batch.node_lists import compress, expand, placement_of, token_of
from ramp.batch.reconciling import Reconciler
from ramp.batch.system import Parts, SystemSnapshot
from ramp.errors import BatchSystemError, SystemRefused
from ramp.model.instant import SECOND, Duration, Instant, iso

LOST_AFTER_S: Final = 60.0
"""Seconds of trouble before a sold slot is moved or lost."""

LAST_LOOK: Final[Duration] = 20 * SECOND
"""Time before a slot's begin in which it is looked after for the last time; longer than the pause between two looks."""

MOVING_PATIENCE_S: Final = 5.0
"""Seconds that all moves of one call may wait together for a busy system. Many slots may be in trouble at once, and a
plug-in that takes too long is killed and forgets since when.
"""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class SoldSlots:
    """One look at the sold slots of a resource.

    Attributes:
        book: the record of sold slots.
        reconciler: makes the system agree with it.
        elsewhere: returns other cores for an entry, free for the whole of its slot, or none.
        monotonic: a monotonic clock in seconds.
        wanting: start of each slot's trouble, by key; kept between looks.
        picture: the system.
        now: the present.
        patience_s: remaining seconds of waiting.
        failure: the last failure at a slot.
    """

    book: HoldBook
    reconciler: Reconciler
    elsewhere: Callable[[Entry, Instant], Parts]
    monotonic: Callable[[], float]
    wanting: dict[str, float]
    picture: SystemSnapshot
    now: Instant
    patience_s: float = MOVING_PATIENCE_S
    failure: BatchSystemError | None = None

    def tend(self, owners: Mapping[str, str]) -> dict[str, str]:
        """Look after every slot and return reasons for lost ones, by key.

        A failure at one slot does not stop the others; see `check`.

        Args:
            owners: the buyer's local account by the key of each sold slot; may be empty.
        """
        lost: dict[str, str] = {}
        for key, account in owners.items():
            try:
                reason = self._seen_to(key, account)
            except BatchSystemError as error:
                self.failure = error
                _log.warning("%s cannot be seen to now: %s", key, error)
                continue
            if reason:
                lost[key] = reason
        return lost

    def check(self) -> None:
        """Raise the last failure at a slot; `BatchSystemError` if the system could not be asked about a slot."""
        if self.failure is not None:
            raise self.failure

    def _seen_to(self, key: str, account: str) -> str:
        entry = self.book.entry(key)
        if entry is not None and entry.stands(self.now) and not entry.live(self.now):
            return ""  # it has ended
        reason = self._trouble(entry, account)
        if not reason:
            self.wanting.pop(key, None)
            return ""
        is_over = self.monotonic() - self.wanting.setdefault(key, self.monotonic()) >= LOST_AFTER_S
        if is_over or (entry is not None and 0 < entry.slot.start - self.now <= LAST_LOOK):
            kept = self._move(key, reason)
            if kept and is_over:
                return reason if kept == reason else f"{reason}; {kept}"
            if not kept:
                self.wanting.pop(key, None)
        return ""

    def _trouble(self, entry: Entry | None, account: str) -> str:
        """Hand over or make a slot again if necessary; return its trouble, empty without any."""
        if entry is None or not entry.firm or not entry.live(self.now):
            return "the plug-in's book has no such slot any more"
        if account and entry.account != account:
            entry = self.book.change(entry.key, account=account)
        reason = harm(entry, self.picture, self.reconciler.prefix, self.now)
        if reason:
            return reason
        found = next((each for each in self.picture.reservations if each.name == entry.name), None)
        if self.reconciler.fits(found, entry, self.now):
            return ""
        try:
            self.reconciler.hand_over(entry, self.now)
        except SystemRefused as refused:
            return "" if refused.transient else refused.reason
        return ""

    def _move(self, key: str, reason: str) -> str:
        """Give a slot that has not begun other cores; return why that is impossible, empty if it has moved."""
        entry, now = self.book.entry(key), self.now
        if entry is None or not entry.firm or not entry.live(now):
            return reason
        if now >= entry.slot.start:
            return "the slot has begun, so it is not moved"
        parts = self.elsewhere(entry, now)
        if not parts or sorted(parts) == sorted(entry.parts):
            kind = "cores on nodes of the same kind" if entry.shaped else "cores"
            return f"no {entry.slot.cores} other {kind} are free for it"
        slot = replace(entry.slot, placement=placement_of(parts), token=token_of(parts))
        after = self.book.change(entry.key, parts=parts, slot=slot, moved_at=entry.moving(now))
        begun = self.monotonic()
        try:
            self.reconciler.make_anew(after, now, max(self.patience_s, 0.0))
        except SystemRefused as refused:
            _log.warning("%s cannot be moved to %s: %s", entry.name, slot.placement, refused)
            return f"it cannot be moved to {slot.placement}: {refused.reason}"
        finally:
            self.patience_s -= self.monotonic() - begun
        _log.warning("%s was moved from %s to %s: %s", entry.name, entry.slot.placement, slot.placement, reason)
        return ""


def harm(entry: Entry, picture: SystemSnapshot, own_prefix: str, now: Instant) -> str:
    """Say why a job in a sold slot would not start; empty if it would.

    Nodes that the system still waits for do no harm. Once the slot has begun and one of its jobs runs, only unusable
    nodes and other reservations do.

    Args:
        entry: the slot.
        picture: the system.
        own_prefix: of the names of the market's reservations, which keep out of each other's way.
        now: the present.
    """
    found = [
        f"node {node.name} is {node.state}" + (f" ({node.reason})" if node.reason else "")
        for node in picture.nodes
        if node.name in dict(entry.parts) and not node.usable and not node.waited_for
    ]
    begun = entry.slot.start <= now
    begin, end = max(entry.slot.start, now), now + 1 if begun else entry.slot.end
    found += [
        f"reservation {each.name} has {names} from {iso(each.start)}"
        for each in picture.reservations
        if each.start < end and (each.end is None or each.end > begin) and not each.name.startswith(own_prefix)
        if each.cores_in_all is None and (names := _too_full(entry, each.parts, picture))
    ]
    if begun and any(job.reservation == entry.name for job in picture.running):
        return "; ".join(found)
    if begun and picture.limits.closed:
        found.append(picture.limits.closed)
    others = [job for job in picture.running if job.reservation != entry.name and (job.end is None or job.end > begin)]
    taken: Counter[str] = Counter()
    for name, count in chain.from_iterable(job.taken for job in others):
        taken[name] += count
    full = set(expand(_too_full(entry, tuple(taken.items()), picture)))
    for job in others:  # Slurm itself keeps the cores, but not their memory
        if names := compress(name for name, _ in job.takes if name in full):
            found.append(f"job {job.job_id} of {job.user} has the memory of {names}")
    return "; ".join(found)


def _too_full(entry: Entry, parts: Parts, picture: SystemSnapshot) -> str:
    """Return the nodes of a slot that have too few cores for both it and others; empty if they have enough."""
    cores, wanted = {node.name: node.cores for node in picture.nodes}, dict(entry.parts)
    return compress(name for name, count in parts if name in wanted and wanted[name] + count > cores.get(name, NEVER))
