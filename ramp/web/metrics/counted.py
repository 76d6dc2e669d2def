"""Counters and durations of auctions, rounds, offers, refusals and purchases.

Labels contain no names of users or ids of requests. Source: Prometheus documentation, "Metric and label naming".
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from ramp.control.events import Event
from ramp.model.instant import seconds
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.model.offer import RefusalCode
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import CancellationEnded, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced

ANSWER_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of single answers, in seconds."""

ROUND_BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histogram of rounds, in seconds."""

REQUEST_BUCKETS_S: Final = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""Upper bounds of the histogram of whole requests, in seconds."""

ROUNDS_BUCKETS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0)
"""Upper bounds of the histogram of rounds per auction."""


class Counted:
    """Counts the events of users.

    Args:
        registry: where the numbers are shown.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the number of series

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(name, what, labels, registry=registry)

        def histogram(name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, what, buckets=buckets, registry=registry)

        since = Gauge("ramp_counting_since_timestamp_seconds", "When counters were 0, Unix time.", registry=registry)
        since.set_to_current_time()
        self._opened = counter("ramp_auctions_opened", "Requests whose first round was opened.")
        self._ended = counter("ramp_auctions", "Requests that have ended, by outcome.", "outcome")
        self._rounds = counter("ramp_rounds", "Rounds of bidding that were closed.")
        self._calls = counter("ramp_calls_for_proposals", "Calls for proposals sent, first and again.", "sending")
        self._offers = counter("ramp_offers", "Offers received.")
        self._refusals = counter("ramp_refusals", "Refusals received, by code (no_answer: silence).", "code")
        self._stages = counter("ramp_unit_stages", "Stages that units' purchases have reached.", "stage")
        self._cancelled = counter("ramp_cancellations", "Cancellations that have ended, by result.", "result")
        self._paid = counter("ramp_paid_credits", "Credits paid for requests that were committed.")
        self._refunded = counter("ramp_refunded_credits", "Credits that came back by cancellations.")
        self._answer_s = histogram(
            "ramp_answer_seconds", "Time from the calls for proposals to a seller's answer.", ANSWER_BUCKETS_S
        )
        self._round_s = histogram("ramp_round_seconds", "Duration of rounds.", ROUND_BUCKETS_S)
        self._request_s = histogram("ramp_auction_seconds", "Duration of requests that have ended.", REQUEST_BUCKETS_S)
        self._rounds_of = histogram("ramp_auction_rounds", "Rounds of requests that have ended.", ROUNDS_BUCKETS)
        # a series that is there from the beginning has a rate at its first event
        for status in RequestStatus:
            self._ended.labels(status.value)
        for code in RefusalCode:
            self._refusals.labels(code.value)
        for sending in ("first", "again"):
            self._calls.labels(sending)
        for result in ("done", "lost", "refused"):
            self._cancelled.labels(result)

    def take(self, event: Event) -> None:
        """Count an event, if it is of a counted type."""
        match event:
            case RoundOpened(round_number=number, resources=resources):
                self._calls.labels("first").inc(resources)
                self._opened.inc(number == 1)
            case RoundClosed():
                self._take_round(event)
            case UnitAdvanced(stage=stage):
                self._stages.labels(stage).inc()
            case RequestEnded(outcome=outcome):
                self._ended.labels(outcome.status.value).inc()
                self._rounds_of.observe(len(outcome.rounds))
                self._request_s.observe(seconds(outcome.duration))
                self._paid.inc(credits_of(outcome.cost))
            case CancellationEnded(outcome=cancelled):
                result = "lost" if cancelled.cause else "done" if cancelled.done else "refused"
                self._cancelled.labels(result).inc()
                self._refunded.inc(credits_of(cancelled.refund))
            case _:
                pass

    def _take_round(self, event: RoundClosed) -> None:
        self._rounds.inc()
        self._round_s.observe(seconds(event.record.duration))
        self._offers.inc(len(event.record.offers))
        self._calls.labels("again").inc(event.called_again)
        for refused in event.record.refusals:
            self._refusals.labels(refused.refusal.code.value).inc()
        for _, after in event.answered:
            self._answer_s.observe(seconds(after))


def credits_of(minor_units: int) -> float:
    """Return minor units as credits."""
    return minor_units / MINOR_UNITS_PER_CREDIT
