"""One purchase: its machines side by side, and what is kept of it once it has ended."""

from __future__ import annotations

from typing import Any

from ramp.model import contents as c
from ramp.model.instant import HOUR
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus

# -- many at once ----------------------------------------------------------------------------------------------------


def test_a_request_that_a_wrong_clock_forbids_has_not_begun(alice: Any) -> None:
    alice.command(ev.ClockAsked("clock-1"))
    alice.hear("bank", c.ClockReading("clock-1", HOUR))
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    (said,) = alice.command(ev.RequestSubmitted("r1", RequestForQuotation((unit,)), ev.AuctionOptions()), 5)
    outcome = said.progress.outcome
    assert (outcome.status, outcome.started_at, outcome.duration) == (RequestStatus.FAILED, 5, 0)
    assert outcome.code == ""  # codes are of rules that have failed
    assert "3600.000 s behind the bank's" in outcome.reason
