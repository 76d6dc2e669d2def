"""Time limits and retransmission, each with its reason; the shells fill them from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import MINUTE, SECOND, Duration, Instant


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits of the protocol.

    Attributes:
        retry_first: first retransmission after this long; answers normally take milliseconds, a lost line some seconds.
        retry_longest: the doubling of the pause stops here.
        vote_limit: a resource that has not voted after this long is passed over for the next best.
        hold_time: how long a resource holds a slot for an accepted offer (step 10); long enough for the user to pass
            over several silent resources.
        decision_margin: the user decides only while every hold has at least this long to run.
        agreement_validity: the bank settles an agreement no later than this after the decision.
        bank_grace: how long after that the user waits before it asks the bank itself.
        offer_validity: how long a resource stands by an offer.
        query_limit: how long an owner's query to bank, resource or directory is retried.
        account_query_age: the bank refuses signed account queries older than this; bounds the memory of nonces.
        discovery_limit: how long the directory is asked before a request ends without offers.
        lease: how long a directory registration lasts without a heartbeat.
        heartbeat: pause between two registrations.
        approval_limit: how long the owner may think over offers.
    """

    retry_first: Duration = 1 * SECOND
    retry_longest: Duration = 15 * SECOND
    vote_limit: Duration = 8 * SECOND
    hold_time: Duration = 2 * MINUTE
    decision_margin: Duration = 5 * SECOND
    agreement_validity: Duration = 5 * MINUTE
    bank_grace: Duration = 10 * SECOND
    offer_validity: Duration = 10 * MINUTE
    query_limit: Duration = 20 * SECOND
    account_query_age: Duration = 5 * MINUTE
    discovery_limit: Duration = 10 * SECOND
    lease: Duration = 15 * SECOND
    heartbeat: Duration = 5 * SECOND
    approval_limit: Duration = 5 * MINUTE


@dataclass(slots=True)
class Retry:
    """When to send something again: pauses double from the first to the longest.

    Attributes:
        due: the next time to send again, or None when nothing is awaited.
    """

    timing: Timing
    due: Instant | None = None
    _pause: Duration = 0

    def begin(self, now: Instant) -> None:
        """Something has just been sent for the first time."""
        self._pause = self.timing.retry_first
        self.due = now + self._pause

    def again(self, now: Instant) -> None:
        """It has just been sent again."""
        self._pause = min(2 * self._pause, self.timing.retry_longest)
        self.due = now + self._pause

    def stop(self) -> None:
        """The answer is in."""
        self.due = None

    def is_due(self, now: Instant) -> bool:
        """Whether it is time to send again."""
        return self.due is not None and now >= self.due


def earliest(*instants: Instant | None) -> Instant | None:
    """The earliest of several deadlines, None standing for "never"."""
    given = [instant for instant in instants if instant is not None]
    return min(given) if given else None
