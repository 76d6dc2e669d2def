"""What the log says of requests and cancellations that have ended, and of a market that is up."""

import logging
from dataclasses import replace

import pytest

from ramp.agents.roles import ending_text, event_of
from ramp.agents.supervise import Told
from ramp.model.offer import Offer
from ramp.protocol.outcome import BoughtUnit, ChangeOutcome, RequestOutcome, RequestStatus
from ramp.protocol.progress import ChangeEnded, RequestEnded


def outcome(status: RequestStatus, reason: str = "") -> RequestOutcome:
    offer = Offer("offer-1", "request-1", 1, "curie1@localhost", 54, 0, 3_600_000_000, 8, 0.5, 60_000_000)
    units = (BoughtUnit(1, offer, offer.cores),) if not reason else ()
    return RequestOutcome("request-1", status, reason, (), units, 0, 1)


def test_endings_are_told_in_one_line() -> None:
    bought = RequestEnded(outcome(RequestStatus.COMMITTED))
    assert ending_text(bought) == "request-1 committed: unit 1 of curie1@localhost for 432.00 credits"
    rejected = RequestEnded(outcome(RequestStatus.REJECTED, "too dear"))
    assert ending_text(rejected) == "request-1 rejected: too dear"
    assert ending_text(RequestEnded(outcome(RequestStatus.QUOTED))) == "request-1 quoted: nothing was bought"
    given = ChangeEnded(ChangeOutcome("agreement-1", 0, True, refund=43_200, ends=True))
    assert ending_text(given) == "agreement-1 cancelled, 432.00 credits refunded"
    assert event_of(given) == "cancellation"
    outcome_of_loss = replace(given.outcome, code="not_delivered", detail="node n1 is drained")
    lost = ChangeEnded(outcome_of_loss)
    assert ending_text(lost) == "agreement-1 lost by the seller: node n1 is drained; 432.00 credits refunded"
    assert event_of(lost) == "loss"
    kept = ChangeEnded(ChangeOutcome("agreement-1", 0, False, code="not_active", ends=True))
    assert ending_text(kept) == "agreement-1 not cancelled: not_active"


def test_only_what_becomes_of_a_market_that_is_up_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told = Told()
    told.event({"agent": "curie1", "event": "failed", "detail": "its launcher hears of it"})
    told.up()
    told.event({"agent": "curie1", "event": "degraded", "detail": "no space left"})
    told.event({"agent": "curie1", "event": "stopped", "detail": ""})
    assert [record.getMessage() for record in caplog.records] == [
        "the market is up",
        "curie1 is degraded: no space left",
    ]
