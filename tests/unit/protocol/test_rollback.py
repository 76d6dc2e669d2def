"""A rollback undoes a unit whose companions failed; one that has no companions cannot be rolled back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.model.acl import Performative
from ramp.model.agreement import Agreement, Cancellation, Signed
from ramp.model.contents import CancellationRefused, PaymentMade
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.protocol.effects import Send
from ramp.protocol.participant import Participant
from ramp.protocol.records import HoldIntended
from ramp.protocol.tables import ParticipantState
from ramp.protocol.timing import Pace, Timing

NOW = 1_800_000_000_000_000
START = NOW + 5 * MINUTE
UNIT = RequestUnit(1, 70, START + HOUR, TotalCores(8), not_before=START, wall_time=HOUR)
OFFER = Offer("offer-1", "request-1", 1, "res", 50, START, START + HOUR, 8, 0.5, HOUR)
SLOT = Slot(START, START + HOUR, 8, 0.5)


def _sold(units_total: int) -> Participant:
    intended = HoldIntended(OFFER, UNIT, SLOT, "user", NOW + MINUTE, NOW)
    participant = Participant(intended, resource="res", bank="bank", pace=Pace(Timing()))
    participant.start(NOW)
    participant.on_held(Reservation("offer-1", "res-1", SLOT, False, NOW + MINUTE), NOW)
    agreement = Agreement(
        "agreement-1",
        "request-1",
        units_total,
        "user",
        "res",
        "bank",
        UNIT,
        OFFER,
        "res-1",
        OFFER.cost,
        NOW,
        NOW + HOUR,
    )
    participant.on_agreement(Signed(agreement, ("user",), "text"), NOW)
    participant.on_confirmed(Reservation("offer-1", "res-1", SLOT, True, None), NOW)
    participant.on_bank(PaymentMade("agreement-1", "payment-1", OFFER.cost), NOW)
    assert participant.state is ParticipantState.SOLD
    return participant


ROLLBACK = Cancellation("cancellation-1", "agreement-1", "offer-1", "user", "res", True, "another unit failed", NOW)


@pytest.mark.parametrize(("units_total", "late", "refunds"), [(2, True, True), (1, True, False), (1, False, True)])
def test_after_the_start_only_a_unit_with_companions_is_rolled_back(
    units_total: int, late: bool, refunds: bool
) -> None:
    participant = _sold(units_total)
    now = START + MINUTE if late else NOW
    effects = participant.on_cancellation(Signed(replace(ROLLBACK, issued_at=now), ("user",), "text"), now)
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    if refunds:
        assert participant.state is ParticipantState.REFUNDING
        assert [message.performative for message in sent] == [Performative.REQUEST]
    else:
        assert participant.state is ParticipantState.SOLD
        assert [type(message.content) for message in sent] == [CancellationRefused]
