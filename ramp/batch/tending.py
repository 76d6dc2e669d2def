"""Sold slots on a batch system, looked after until they end: handed over, made again, moved, or given up.

A slot is in trouble when a node of it is out of service, or the system has lost its reservation and has given the
cores to others. Either is said of what is well for some seconds after a restart; so it is believed after a minute. A
system waits for a node that it does not hear, for minutes; no slot is in trouble before it has given the node up.
Then, before the slot begins, other nodes of the same shape that are free for the whole of it take the place of the old
ones; where there are none, and once it has begun, it is lost, and the resource pays it back.

A moved slot keeps its key and its reservation's name, which is in the signed agreement and in the buyer's scripts, and
which no system can change. So the book is written first; then the old reservation, which cannot be delivered any more,
is removed and the new one made under its name. After a crash in between the system is brought to agree with the book by
that name, as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ramp.batch.book import Entry, HoldBook
from ramp.batch.reconciling import Reconciler
from ramp.batch.sold_nodes import placement_of, token_of
from ramp.batch.system import Parts, SystemReservation, SystemSnapshot
from ramp.errors import BatchSystemError, SystemRefused
from ramp.model.instant import Instant

LOST_AFTER_S: Final = 60.0
"""Seconds for which a sold slot must not be as it should before it is moved or given up."""

MOVING_PATIENCE_S: Final = 5.0
"""Seconds that one time of tending may wait, for all its moves together, while the system says that it is busy: many
slots may be in trouble at once, and a plug-in that takes too long is killed and forgets since when they are."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class SoldSlots:
    """The sold slots of one resource.

    Attributes:
        book: what is sold.
        reconciler: brings the system to agree with it.
        elsewhere: other cores for an entry, of the same shape and free for the whole of its slot; none where there are
            none.
        monotonic: seconds that pass.
        wanting: since when slots are not as they should be, by key; kept from one time to the next.
        patience_s: seconds that may be waited still.
    """

    book: HoldBook
    reconciler: Reconciler
    elsewhere: Callable[[Entry, Instant], Parts]
    monotonic: Callable[[], float]
    wanting: dict[str, float] = field(default_factory=dict)
    patience_s: float = MOVING_PATIENCE_S

    def tend(
        self,
        owners: Mapping[str, str],
        picture: SystemSnapshot,
        there: Mapping[str, SystemReservation],
        now: Instant,
    ) -> dict[str, str]:
        """See to every slot; reasons of those that are lost, by key.

        What fails at one slot keeps none of the others from being seen to. It is raised where nothing is lost, else it
        is found again the next time.

        Args:
            owners: by the key of each sold slot the buyer's local account, empty where there is none.
            picture: the system.
            there: its reservations by name, read now.
            now: the present.

        Raises:
            BatchSystemError: the system cannot be asked; then nothing is lost.
        """
        lost: dict[str, str] = {}
        failure: BatchSystemError | None = None
        for key, account in owners.items():
            try:
                reason = self._seen_to(key, account, picture, there, now)
            except BatchSystemError as error:
                failure = error
                _log.warning("%s cannot be seen to now: %s", key, error)
                continue
            if reason:
                lost[key] = reason
        if failure is not None and not lost:
            raise failure
        return lost

    def _seen_to(
        self,
        key: str,
        account: str,
        picture: SystemSnapshot,
        there: Mapping[str, SystemReservation],
        now: Instant,
    ) -> str:
        """See to one slot; why it is lost, empty where it is not, or not yet."""
        entry = self.book.entry(key)
        if entry is not None and entry.stands(now) and not entry.live(now):
            return ""  # it has ended
        reason = self._trouble(entry, account, picture, there, now)
        if not reason:
            self.wanting.pop(key, None)
        elif self.monotonic() - self.wanting.setdefault(key, self.monotonic()) >= LOST_AFTER_S:
            if not self._moved(key, reason, now):
                return reason
            self.wanting.pop(key, None)
        return ""

    def _trouble(
        self,
        entry: Entry | None,
        account: str,
        picture: SystemSnapshot,
        there: Mapping[str, SystemReservation],
        now: Instant,
    ) -> str:
        """Why a slot cannot be had as it stands; empty where it can, after it was handed over or made again."""
        if entry is None or not entry.firm or not entry.live(now):
            return "the plug-in's book has no such slot any more"
        if account and entry.account != account:
            entry = self.book.change(entry.key, account=account)
        reason = broken_nodes(entry, picture)
        if reason:
            return reason
        if self.reconciler.fits(there.get(entry.name), entry, now):
            return ""
        try:
            self.reconciler.hand_over(entry, now)
        except SystemRefused as refused:
            return "" if refused.transient else refused.reason
        return ""

    def _moved(self, key: str, reason: str, now: Instant) -> bool:
        """Give a slot that has not begun other cores, if there are any."""
        entry = self.book.entry(key)
        if entry is None or not entry.firm or not entry.live(now) or entry.slot is None or now >= entry.slot.start:
            return False
        parts = self.elsewhere(entry, now)
        if not parts or sorted(parts) == sorted(entry.parts):
            return False
        slot = replace(entry.slot, placement=placement_of(parts), token=token_of(parts))
        after = self.book.change(entry.key, parts=parts, slot=slot, moved_at=entry.moving(now))
        begun = self.monotonic()
        try:
            self.reconciler.make_anew(after, now, max(self.patience_s, 0.0))
        except SystemRefused as refused:
            _log.warning("%s cannot be moved to %s: %s", entry.name, slot.placement, refused)
            return False
        finally:
            self.patience_s -= self.monotonic() - begun
        _log.warning("%s was moved from %s to %s: %s", entry.name, entry.slot.placement, slot.placement, reason)
        return True


def broken_nodes(entry: Entry, picture: SystemSnapshot) -> str:
    """Which nodes of a slot are out of service, and why; empty where none is, or the system still waits for them."""
    wanted = {name for name, _ in entry.parts}
    return "; ".join(
        f"node {node.name} is {node.state}" + (f" ({node.reason})" if node.reason else "")
        for node in picture.nodes
        if node.name in wanted and not node.usable and not node.waited_for
    )
