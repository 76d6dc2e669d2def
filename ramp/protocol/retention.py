"""What has ended stays at hand for a stated time, then leaves memory and moves from the journal to the archive.

`Timing.retention` counts from an agreement's end (its slot's), or from the end of what came to no agreement. It is
longer than anything lasts that peers may still say of it, so that late and repeated messages find what they are about,
and nothing is begun again with a document that has been forgotten: an order stands up to `ORDER_VALIDITY_MAX` (15
minutes), an offer for `Timing.offer_validity` (10), a seal is believed for `SEAL_AGE_MAX` (10), what begins something
for `Timing.message_age` (5), twice that where two clocks are apart. An hour is more than all of them together, and an
agent that was away for that long still finds its peers knowing.

A document that comes later is a stranger's: an acceptance finds no offer, an agreement no slot held for it, and the
bank, which never forgets, pays an agreement id once. Ids are random, so none is met twice.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ramp.model.instant import MINUTE, Duration, Instant
from ramp.protocol.timing import Timing

RETENTION_MIN: Duration = 20 * MINUTE
"""The least retention that a configuration may state: an order's longest validity, and five minutes between clocks."""

ARCHIVE_PAUSE: Duration = 5 * MINUTE
"""What is due is archived together once in this time at most: moving to the archive syncs two files."""


def least_retention(timing: Timing) -> Duration:
    """The shortest retention that goes with the other limits."""
    return max(
        RETENTION_MIN, timing.offer_validity, timing.agreement_validity, timing.hold_time, 2 * timing.message_age
    )


class Retention:
    """When what has ended may go; the references are the party's own.

    Args:
        timing: the protocol's limits.
    """

    def __init__(self, timing: Timing) -> None:
        self._retention = timing.retention
        self._until: dict[str, Instant] = {}
        self._queue: list[tuple[Instant, str]] = []
        self._not_before: Instant = 0

    def __len__(self) -> int:
        return len(self._until)

    @property
    def deadline(self) -> Instant | None:
        """Return when `due` next returns something, or None."""
        while self._queue and self._until.get(self._queue[0][1]) != self._queue[0][0]:
            heappop(self._queue)  # it has been put off or dropped
        return max(self._queue[0][0], self._not_before) if self._queue else None

    def keep(self, reference: str, ended_at: Instant) -> None:
        """Record that something ended at an instant, or later than recorded before."""
        until = ended_at + self._retention
        if self._until.get(reference, -1) < until:
            self._until[reference] = until
            heappush(self._queue, (until, reference))

    def drop(self, reference: str) -> None:
        """Forget a reference that is active again or gone."""
        self._until.pop(reference, None)

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`; what ended at a date stays for longer rather than less."""
        self._not_before += by
        if by > 0:
            self._until = {reference: until + by for reference, until in self._until.items()}
            self._queue = [(until, reference) for reference, until in self._until.items()]
            heapify(self._queue)

    def due(self, now: Instant) -> list[str]:
        """Drop and return all expired references, at most once per `ARCHIVE_PAUSE`."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return []
        self._not_before = now + ARCHIVE_PAUSE
        found: list[str] = []
        while self._queue and self._queue[0][0] <= now:
            until, reference = heappop(self._queue)
            if self._until.get(reference) == until:
                del self._until[reference]
                found.append(reference)
        return found
