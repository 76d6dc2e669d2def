"""Time limits with their reasons, and retransmission; hosts fill the limits from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from ramp.options import Seconds


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits of the protocol.

    Attributes:
        retry_first: minimum pause before the first retransmission; answers normally take milliseconds, a lost line some
            seconds. Slower answers lengthen it (`Pace`).
        retry_longest: longest pause.
        vote_limit: after this time without a vote the next best resource is asked; longer if answers are slow (`Pace`).
        hold_time: how long a resource holds a slot for an accepted offer (step 10); long enough for the user to pass
            over several silent resources.
        decision_margin: remaining time that every hold must have when the user decides.
        agreement_validity: validity of agreements and of the reserved money; unposted ones are then void.
        confirm_limit: a purchase not settled this long after the decision is voided, and the buyer may try the next
            best; longer if answers are slow (`Pace`).
        cancellation_limit: after this time without a countersigned cancellation, the bank refunds on the buyer's
            request.
        amendment_notice: minimum time from a proposed resize to its effect, in which the resource can answer.
        amendment_window: time after the effect for the resource to release cores and the bank to post; an unposted
            amendment is then void.
        offer_validity: validity of an offer.
        query_limit: how long an owner's query to bank, resource or directory is retried.
        message_age: maximum age of a sealed message that starts a conversation, and maximum lead over the clock; bounds
            the difference of clocks.
        discovery_limit: how long a silent directory is asked before a request ends without offers; five queries, so
            that a line that loses a third of all messages seldom ends one.
        empty_limit: how long an empty directory is asked again, while a market starts.
        lease: how long a directory registration lasts without a heartbeat.
        heartbeat: pause between two registrations.
        approval_limit: how long the owner may consider offers.
        retention: time from the end of a slot or request until it leaves memory and its records are archived;
            at least 1200 s, and more with longer limits, because peers may still refer to it.
    """

    retry_first: Seconds = 1 * SECOND
    retry_longest: Seconds = 15 * SECOND
    vote_limit: Seconds = 8 * SECOND
    hold_time: Seconds = 2 * MINUTE
    decision_margin: Seconds = 5 * SECOND
    agreement_validity: Seconds = 2 * MINUTE
    confirm_limit: Seconds = 30 * SECOND
    cancellation_limit: Seconds = 15 * SECOND
    amendment_notice: Seconds = 10 * SECOND
    amendment_window: Seconds = 2 * MINUTE
    offer_validity: Seconds = 10 * MINUTE
    query_limit: Seconds = 20 * SECOND
    message_age: Seconds = 5 * MINUTE
    discovery_limit: Seconds = 30 * SECOND
    empty_limit: Seconds = 10 * SECOND
    lease: Seconds = 15 * SECOND
    heartbeat: Seconds = 5 * SECOND
    approval_limit: Seconds = 5 * MINUTE
    retention: Seconds = 1 * HOUR


class Pace:
    """One party's estimate of present answer times: the retransmission time-out of RFC 6298, section 2.

    It covers all peers, as a party's messages share its line and server, where congestion delays them. Every answer
    feeds it, and every first pause comes from it.

    Attributes:
        pause: before a first retransmission.
    """

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.pause: Duration = timing.retry_first
        self._smoothed: Duration | None = None
        self._variation: Duration = 0

    @property
    def vote_limit(self) -> Duration:
        """The time for a vote; with slow answers long enough for one retransmission."""
        return max(self.timing.vote_limit, 2 * self.pause)

    def patience(self, limit: Duration) -> Duration:
        """Return a limit, or the time of two retransmissions if answers are slow."""
        return max(limit, 4 * self.pause)

    def observe(self, round_trip: Duration) -> None:
        """Record a round trip of a message sent once; else the answered copy is unknown (Karn)."""
        if self._smoothed is None:
            self._smoothed, self._variation = round_trip, round_trip // 2
        else:
            self._variation += (abs(self._smoothed - round_trip) - self._variation) // 4
            self._smoothed += (round_trip - self._smoothed) // 8
        wanted = self._smoothed + 4 * self._variation
        self.pause = min(max(wanted, self.timing.retry_first), self.timing.retry_longest)

    def back_off(self, pause: Duration, longest: Duration | None = None) -> Duration:
        """Return the pause after an unanswered one: twice as long, up to the longest."""
        return min(2 * pause, self.timing.retry_longest if longest is None else longest)


class Retry:
    """The times to repeat one message: after the party's pause, then after twice as long each time.

    Args:
        pace: of the party.
        longest: longest pause; None for the common limit.

    Attributes:
        due: next time to repeat it, or None.
        limit: until when to wait for its answer; None without a limit.
        begun: when it was sent for the first time.
    """

    def __init__(self, pace: Pace, longest: Duration | None = None) -> None:
        self.due: Instant | None = None
        self.limit: Instant | None = None
        self._pace = pace
        self._longest = longest
        self._pause: Duration = 0
        self._sent_once = False
        self.begun: Instant = 0

    @property
    def deadline(self) -> Instant | None:
        """When to repeat the message or to give up, or None."""
        return earliest(self.due, self.limit)

    def begin(self, now: Instant, limit: Instant | None = None) -> None:
        """Start the timer after a first transmission, and wait for the answer until a limit."""
        self.limit = limit
        self._sent_once, self.begun = True, now
        self._wait(self._pace.pause, now)

    def again(self, now: Instant) -> None:
        """Restart the timer after a retransmission or provisional answer; no later answer measures a round trip."""
        self._sent_once = False
        self._wait(self._pace.back_off(self._pause, self._longest) if self._pause else self._pace.pause, now)

    def heard(self, now: Instant) -> None:
        """Record that the peer is at work and its final answer is still due."""
        if self.due is not None:
            self._observe(now)
            self._wait(max(self._pause, self._pace.pause), now)

    def answered(self, now: Instant) -> None:
        """Stop after the answer."""
        if self.due is not None:
            self._observe(now)
        self.due = None

    def stop(self) -> None:
        """Wait for no answer any more."""
        self.due = self.limit = None

    def clock_set(self, by: Duration) -> None:
        self.due, self.limit, self.begun = moved(self.due, by), moved(self.limit, by), self.begun + by

    def is_due(self, now: Instant) -> bool:
        return self.due is not None and now >= self.due

    def is_over(self, now: Instant) -> bool:
        """Return whether the wait for the answer has reached its limit."""
        return self.limit is not None and now >= self.limit

    def _observe(self, now: Instant) -> None:
        if self._sent_once:
            self._pace.observe(now - self.begun)

    def _wait(self, pause: Duration, now: Instant) -> None:
        self._pause = pause
        self.due = now + pause


class Retried:
    """Base of conversations whose only timer is that of what they have said."""

    _retry: Retry

    @property
    def deadline(self) -> Instant | None:
        return self._retry.deadline

    def clock_set(self, by: Duration) -> None:
        self._retry.clock_set(by)


def moved(instant: Instant | None, by: Duration) -> Instant | None:
    """Return a deadline moved with the clock, which was set by this duration; None means "never"."""
    return None if instant is None else instant + by


def earliest(*instants: Instant | None) -> Instant | None:
    """Return the earliest of several deadlines; None means "never"."""
    first = None
    for instant in instants:
        if instant is not None and (first is None or instant < first):
            first = instant
    return first
