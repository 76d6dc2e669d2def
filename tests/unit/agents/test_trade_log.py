"""What the log says of requests and changes that have ended, and of a market that is up."""

import logging
from dataclasses import replace

import pytest

from ramp.agents.roles import ending_text
from ramp.agents.supervise import Told
from ramp.model.offer import Offer
from ramp.protocol.outcome import BoughtUnit, ChangeOutcome, RequestOutcome, RequestStatus


def outcome(status: RequestStatus, reason: str = "") -> RequestOutcome:
    offer = Offer("offer-1", "request-1", 1, "curie1@localhost", 54, 0, 3_600_000_000, 8, 0.5, 60_000_000)
    units = (BoughtUnit(1, offer, offer.cores),) if not reason else ()
    return RequestOutcome("request-1", status, reason, (), units, 0, 1)


def test_endings_are_told_in_one_line() -> None:
    bought = outcome(RequestStatus.COMMITTED)
    assert ending_text(bought) == "request-1 committed: unit 1 of curie1@localhost for 432.00 credits"
    rejected = outcome(RequestStatus.REJECTED, "too dear")
    assert ending_text(rejected) == "request-1 rejected: too dear"
    assert ending_text(outcome(RequestStatus.QUOTED)) == "request-1 quoted: nothing was bought"


GIVEN = ChangeOutcome("agreement-1", 0, True, refund=43_200, ends=True)
GROWN = ChangeOutcome("agreement-1", 1, True, 96, 7_200_000_000, 3_600_000_000, charge=43_200)


@pytest.mark.parametrize(
    ("changed", "kind", "how"),
    [
        (GIVEN, "cancellation", "cancelled, 432.00 credits refunded"),
        (
            replace(GIVEN, code="not_delivered", detail="node n1 is drained"),
            "loss",
            "lost by the seller: node n1 is drained; 432.00 credits refunded",
        ),
        (
            replace(GIVEN, refund=0, code="already_cancelled", detail="it was cancelled before"),
            "cancellation",
            "cancelled (it was cancelled before), 0.00 credits refunded",
        ),
        (replace(GIVEN, done=False, code="not_active"), "cancellation", "not cancelled: not_active"),
        (
            GROWN,
            "resize",
            "has 96 cores until 1970-01-01T02:00:00Z from 1970-01-01T01:00:00Z on, 432.00 credits paid",
        ),
        (
            replace(GROWN, charge=0, refund=1, done=False, detail="no cores are free"),
            "resize",
            "not resized: no cores are free",
        ),
    ],
)
def test_a_change_of_a_contract_is_told_with_what_it_moved(changed: ChangeOutcome, kind: str, how: str) -> None:
    assert (changed.kind, changed.sentence) == (kind, f"agreement-1 {how}")


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
