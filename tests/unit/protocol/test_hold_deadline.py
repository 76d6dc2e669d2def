"""When a resource's slot ends by itself, whatever machine and bank do, and what is written of why it ended."""

from __future__ import annotations

from typing import Any

from ramp.model import contents as c
from ramp.model.instant import HOUR


def test_a_release_under_an_agreement_names_it(resource: Any, written: Any) -> None:
    offer, _ = resource.hold()
    resource.commit(offer)
    (released,) = written(resource.hear("bank", c.PaymentRefused("a1", "withdrawn", "no longer")))
    assert released.agreement_id == "a1"


def test_a_hold_that_is_let_go_when_it_is_paid_for_stays_sold(resource: Any, said: Any) -> None:
    """It ends by a cancellation, which is signed."""
    offer = resource.sell()
    assert said(resource.hear("alice", c.HoldCancelled("r1", offer.offer_id), HOUR // 2)) == []
    assert resource.state(offer) == "sold"
