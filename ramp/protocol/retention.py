"""Ended conversations stay in memory for a stated time, then move from the journal to the archive.

`Timing.retention` counts from the end of an agreement's slot, or of a conversation without an agreement. It exceeds the
time in which peers may still send messages about it. So late and repeated messages find their subject, and no forgotten
document starts anything again. An order is valid up to `ORDER_VALIDITY_MAX` (15 minutes), an offer for
`Timing.offer_validity` (10), a seal for `SEAL_AGE_MAX` (10), a first message for `Timing.message_age` (5), twice that
if two clocks differ. One hour exceeds their sum, and serves an agent that was away as long.

A later document is unknown: an acceptance finds no offer, an agreement no held slot, and the bank, which never forgets,
pays an agreement id once. Ids are random, so none occurs twice.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ramp.model.instant import MINUTE, Duration, Instant
from ramp.protocol.timing import Timing

RETENTION_MIN: Duration = 20 * MINUTE
"""Minimum retention in a configuration: an order's longest validity, and five minutes between clocks."""

ARCHIVE_PAUSE: Duration = 5 * MINUTE
"""Minimum pause between two moves to the archive, as each syncs two files."""


def least_retention(timing: Timing) -> Duration:
    """Return the minimum retention for the other limits."""
    return max(
        RETENTION_MIN, timing.offer_validity, timing.agreement_validity, timing.hold_time, 2 * timing.message_age
    )


class Retention:
    """Times until which ended conversations are kept, by the party's own references."""

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
        """Keep everything at least as long as before."""
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
