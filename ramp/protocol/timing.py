"""Time limits and retransmission, each with its reason; the shells fill them from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits of the protocol.

    Attributes:
        retry_first: first retransmission after this long at least; answers normally take milliseconds, a lost line some
            seconds. Where answers are seen to take longer, so does the pause (`Pace`).
        retry_longest: no pause is longer.
        vote_limit: a resource that has not voted after this long is passed over for the next best; later where answers
            take long (`Pace`).
        hold_time: how long a resource holds a slot for an accepted offer (step 10); long enough for the user to pass
            over several silent resources.
        decision_margin: the user decides only while every hold has at least this long to run.
        agreement_validity: how long money is set aside for agreements, and they hold; what is not posted then is void.
        confirm_limit: a purchase that is not settled this long after the decision is to be void; the buyer may go on
            with the next best. Later where answers take long (`Pace`).
        cancellation_limit: a resource that has not countersigned a cancellation after this long is passed over: the
            bank refunds on the buyer's word.
        amendment_notice: a bought slot changes no sooner than this after the change was proposed; a resource that has
            not answered by then would otherwise be asked to do it at once.
        amendment_window: so long after that the resource has time to take back what is given up, and the bank to post
            it; what is not posted then is void.
        offer_validity: validity of an offer.
        query_limit: how long an owner's query to bank, resource or directory is retried.
        message_age: sealed messages that begin something are refused when they are older than this, or newer than the
            clock; bounds the memory of nonces, and how far two parties' clocks may be apart.
        discovery_limit: how long a silent directory is asked before a request ends without offers; five queries, so
            that a line that loses a third of all messages seldom ends one.
        empty_limit: how long to ask an empty directory again; a starting market fills in this time.
        lease: how long a directory registration lasts without a heartbeat.
        heartbeat: pause between two registrations.
        approval_limit: how long the owner may think over offers.
        retention: how long what has ended stays in memory and journal (`ramp.protocol.retention` says why, and counted
            from when).
    """

    retry_first: Duration = 1 * SECOND
    retry_longest: Duration = 15 * SECOND
    vote_limit: Duration = 8 * SECOND
    hold_time: Duration = 2 * MINUTE
    decision_margin: Duration = 5 * SECOND
    agreement_validity: Duration = 2 * MINUTE
    confirm_limit: Duration = 30 * SECOND
    cancellation_limit: Duration = 15 * SECOND
    amendment_notice: Duration = 10 * SECOND
    amendment_window: Duration = 2 * MINUTE
    offer_validity: Duration = 10 * MINUTE
    query_limit: Duration = 20 * SECOND
    message_age: Duration = 5 * MINUTE
    discovery_limit: Duration = 30 * SECOND
    empty_limit: Duration = 10 * SECOND
    lease: Duration = 15 * SECOND
    heartbeat: Duration = 5 * SECOND
    approval_limit: Duration = 5 * MINUTE
    retention: Duration = 1 * HOUR


class Pace:
    """One party's estimate of present answer times: the retransmission time-out of RFC 6298, section 2.

    One for all peers, for a party's messages share its line and its server, which is where a crowd makes them wait.
    Everything that the party awaits feeds it and takes its first pause from it.

    Args:
        timing: the protocol's limits.
    """

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self._smoothed: Duration | None = None
        self._variation: Duration = 0

    @property
    def pause(self) -> Duration:
        """How long to wait before a first retransmission."""
        if self._smoothed is None:
            return self.timing.retry_first
        wanted = self._smoothed + 4 * self._variation
        return min(max(wanted, self.timing.retry_first), self.timing.retry_longest)

    @property
    def vote_limit(self) -> Duration:
        """How long a resource may take to vote: while answers are slow, long enough for one retransmission."""
        return max(self.timing.vote_limit, 2 * self.pause)

    def patience(self, limit: Duration) -> Duration:
        """A limit, or as long as two retransmissions take while answers are slow."""
        return max(limit, 4 * self.pause)

    def observe(self, round_trip: Duration) -> None:
        """Record the time from a message to its answer.

        Args:
            round_trip: of a message sent only once; otherwise the answered copy is unknown (Karn).
        """
        if self._smoothed is None:
            self._smoothed, self._variation = round_trip, round_trip // 2
            return
        self._variation += (abs(self._smoothed - round_trip) - self._variation) // 4
        self._smoothed += (round_trip - self._smoothed) // 8

    def back_off(self, pause: Duration, longest: Duration | None = None) -> Duration:
        """The pause after one that has passed without an answer: twice as long, up to the longest."""
        return min(2 * pause, self.timing.retry_longest if longest is None else longest)


class Retry:
    """When to send one message again: after the pause of the party's pace, then after twice as long each time.

    Args:
        pace: of the party.
        longest: no pause is longer; None for the limit of all others.

    Attributes:
        due: the next time to send again, or None when nothing is awaited.
    """

    def __init__(self, pace: Pace, longest: Duration | None = None) -> None:
        self.due: Instant | None = None
        self._pace = pace
        self._longest = longest
        self._pause: Duration = 0
        self._sent_once = False
        self._begun: Instant = 0

    def begin(self, now: Instant) -> None:
        """Start the timer after a first transmission."""
        self._sent_once, self._begun = True, now
        self._wait(self._pace.pause, now)

    def again(self, now: Instant) -> None:
        """Restart the timer after a retransmission."""
        self._sent_once = False
        self._wait(self._pace.back_off(self._pause, self._longest), now)

    def wait(self, now: Instant) -> None:
        """It is not done yet: ask again after a pause twice as long; this was no answer's time."""
        self._sent_once = False
        self._wait(self._pace.back_off(self._pause, self._longest), now)

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
        """Stop without an answer."""
        self.due = None

    def clock_set(self, by: Duration) -> None:
        """Move the due time with the clock after it was set."""
        self.due, self._begun = moved(self.due, by), self._begun + by

    def is_due(self, now: Instant) -> bool:
        """Return whether a retransmission is due."""
        return self.due is not None and now >= self.due

    def _observe(self, now: Instant) -> None:
        if self._sent_once:
            self._pace.observe(now - self._begun)

    def _wait(self, pause: Duration, now: Instant) -> None:
        self._pause = pause
        self.due = now + pause


def moved(instant: Instant | None, by: Duration) -> Instant | None:
    """Return a deadline moved with the clock, which was set by this duration; None means "never"."""
    return None if instant is None else instant + by


def earliest(*instants: Instant | None) -> Instant | None:
    """Return the earliest of several deadlines; None means "never"."""
    given = [instant for instant in instants if instant is not None]
    return min(given) if given else None
