"""When a resource takes cores back by itself: KOALA's PRA and PWA (CoreGRID TR-0092, section 3), with a price.

With precedence to running applications it never does. With precedence to waiting ones the machine is asked every so
often what the first job of its own queue lacks. So much is taken back and no more, of the slot that started last first
(FPSMA); where all that the rights allow is not enough, nothing is.

Nothing is taken for a buyer. A call binds nobody, and an acceptance of an offer whose cores have gone is refused: the
cores are free only when the notice is over, and who is refused pays nothing. What went back for its sake would be money
for which nobody gives any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramp.model.instant import SECOND, Duration, Instant
from ramp.protocol.effects import Effect
from ramp.protocol.reclaiming.asking import LookAtQueue, Precedence
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.reclaiming.desk import Reclaimable
from ramp.protocol.tables import ParticipantState

LOOK_EVERY: Final[Duration] = 15 * SECOND
"""So often the machine is asked for its queue while something could be taken back for it."""


class Waiting:
    """What one resource does for those who wait.

    Args:
        precedence: whose wishes come first.
    """

    def __init__(self, precedence: Precedence) -> None:
        self.precedence = precedence
        self._look_at: Instant | None = None
        self._granted: dict[str, Participant] = {}

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        return self._look_at

    def kept(self, participant: Participant) -> None:
        """A participant has moved, perhaps into a sale or out of it."""
        key = participant.offer.offer_id
        if participant.state is not ParticipantState.SOLD:
            self._granted.pop(key, None)
        elif participant.agreed.request.reclaim is not None and key not in self._granted:
            self._granted[key] = participant
            self._hurry()

    def forget(self, key: str) -> None:
        """A sale is forgotten."""
        self._granted.pop(key, None)

    def granted(self, now: Instant) -> list[Participant]:
        """The sold slots, not yet over, of which cores may be taken back by their agreements."""
        self._granted = {key: each for key, each in self._granted.items() if now < each.size[1]}
        return list(self._granted.values())

    def tick(self, now: Instant) -> list[Effect]:
        """Ask the machine for its queue, while slots run of which something could be taken back for it."""
        if self._look_at is None or now < self._look_at:
            return []
        starts = [each.offer.start for each in self.granted(now)]
        if not starts:
            self._look_at = None
            return []
        runs = min(starts) <= now
        self._look_at = now + LOOK_EVERY if runs else min(starts)
        return [LookAtQueue()] if runs else []

    def clock_set(self) -> None:
        """The clock has been set: look again at once, which does no harm; see `Party.clock_set`."""
        self._hurry()

    def _hurry(self) -> None:
        self._look_at = 0 if self.precedence is Precedence.WAITING and self._granted else None


def least_needed(slots: Sequence[Reclaimable], missing: int) -> list[tuple[str, int]]:
    """Of which slots how many cores are taken; nothing where all together have not enough.

    Args:
        slots: in the order in which they give.
        missing: cores that are lacking.
    """
    if missing < 1 or sum(each.spare for each in slots) < missing:
        return []
    taken: list[tuple[str, int]] = []
    for each in slots:
        some = min(each.spare, missing)
        taken.append((each.offer_id, some))
        missing -= some
        if missing == 0:
            break
    return taken
