"""A user's ended requests, from their end until they move to the archive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ramp.model.agreement import Agreement
from ramp.model.instant import Duration, Instant
from ramp.protocol.conversations import Retention
from ramp.protocol.effects import Archive, Effect
from ramp.protocol.timing import Timing
from ramp.protocol.user.purchase import Purchase


class EndedRequests:
    """The ended requests of one user.

    An ended request keeps its full course for as long as an offer is valid, for late offers and proofs of payment.
    After that only its outcome is kept, as after a restart.

    Args:
        purchases: all requests of the user, by id.
        agreements: all its agreements, by id.
        timing: the protocol's limits.
        is_open: whether an agreement is being cancelled or resized, so that its request must wait.
        until: returns the end of an agreement's resized slot, or 0.
        forgotten: called with the references that are forgotten.

    Attributes:
        retention: when to call `on_timer`.
    """

    def __init__(
        self,
        purchases: dict[str, Purchase],
        agreements: dict[str, Agreement],
        timing: Timing,
        *,
        is_open: Callable[[str], bool],
        until: Callable[[str], Instant],
        forgotten: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._purchases = purchases
        self._is_open = is_open
        self._until = until
        self._forgotten = forgotten
        self._agreements = agreements
        self._linger = timing.offer_validity
        self._time = timing.retention
        self.retention = Retention(timing)
        self._drawn_up: dict[str, list[str]] = {}
        self._at_length: deque[tuple[Instant, str]] = deque()

    def drew_up(self, agreement: Agreement) -> None:
        """Record an agreement of a request; it may be voided later."""
        if agreement.agreement_id not in self._agreements:
            self._agreements[agreement.agreement_id] = agreement
            self._drawn_up.setdefault(agreement.request_id, []).append(agreement.agreement_id)

    def ended(self, purchase: Purchase, now: Instant) -> None:
        """Record that a request has ended, now or before a restart."""
        outcome = purchase.outcome
        assert outcome is not None
        of_request = [self._agreements[each] for each in self._drawn_up.get(purchase.request_id, ())]
        ends = [outcome.started_at + outcome.duration]
        ends += [unit.offer.end for unit in outcome.units if unit.agreement_id]
        ends += [agreement.valid_until for agreement in of_request]
        self.retention.keep(purchase.request_id, max(ends))
        self._at_length.append((now + self._linger, purchase.request_id))
        while self._at_length and self._at_length[0][0] <= now:
            over = self._purchases.get(self._at_length.popleft()[1])
            if over is not None:
                over.shorten()

    def on_timer(self, now: Instant) -> list[Effect]:
        """Archive the requests whose retention is over, with their agreements."""
        references: list[str] = []
        for request_id in self.retention.due(now):
            purchase = self._purchases.get(request_id)
            if purchase is None or purchase.outcome is None:
                continue  # suspended after a bug until the next start
            agreement_ids = self._drawn_up.get(request_id, [])
            if any(map(self._is_open, agreement_ids)):
                self.retention.keep(request_id, now)
                continue
            latest = max(map(self._until, agreement_ids), default=0)
            if now < latest + self._time:
                self.retention.keep(request_id, latest)
                continue
            del self._purchases[request_id]
            for agreement_id in self._drawn_up.pop(request_id, ()):
                del self._agreements[agreement_id]
            references += [request_id, *agreement_ids]
        self._forgotten(tuple(references))
        return [Archive(tuple(references))] if references else []

    def clock_set(self, by: Duration) -> None:
        self._at_length = deque((until + by, request_id) for until, request_id in self._at_length)
