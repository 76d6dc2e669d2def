"""After the decision: what is reported when a unit fails, what a late word changes, and what a slot's record says."""

from __future__ import annotations

from typing import Any

from ramp.model import contents as c
from ramp.model.agreement import ContractChange, Signed
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol import events as ev

# -- the user --------------------------------------------------------------------------------------------------------


def test_who_has_confirmed_can_refuse_no_more(alice: Any) -> None:
    alice.committed()
    agreement = alice.confirmation.agreements[0]
    alice.hear("res1", c.Confirmed(agreement.agreement_id, agreement.offer.offer_id))
    assert alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.HOLD_EXPIRED)) == []


# -- the resource ----------------------------------------------------------------------------------------------------


def cancellation(offer: Any) -> Signed:
    return Signed(ContractChange("a1", 0, offer.offer_id, "alice", "res", "bank", 1, reason="no"), ("alice",), "text")


def test_a_payment_that_is_refused_ends_a_cancellation_as_well(resource: Any, said: Any) -> None:
    """Nothing was paid, so nothing is refunded, and the buyer hears that there is nothing to cancel."""
    offer, _ = resource.hold()
    resource.commit(offer)
    assert said(resource.hear("alice", cancellation(offer), 1)) == []
    answers = said(resource.hear("bank", c.PaymentRefused("a1", "withdrawn"), 2))
    assert [(type(each), each.number, each.code) for each in answers] == [(c.ChangeRefused, 0, "not_active")]


def test_a_hold_that_nobody_confirms_is_over_and_says_why(resource: Any, said: Any) -> None:
    offer, _ = resource.hold()
    participant = resource.party.participants[offer.offer_id]
    assert participant.on_timer(participant.until - 1) == []
    assert any(isinstance(each, fx.ReleaseSlot) for each in participant.on_timer(participant.until))
    (refused,) = said(resource.hear("alice", c.Acceptance("r1", offer.offer_id)))
    assert refused.code is RefusalCode.HOLD_EXPIRED


def test_a_slot_is_being_released_until_the_machine_has_said_so(resource: Any) -> None:
    offer, _ = resource.hold()
    assert not resource.party.is_releasing(offer.offer_id)
    resource.hear("alice", c.HoldCancelled("r1", offer.offer_id))
    assert resource.party.is_releasing(offer.offer_id)
    assert resource.party.has_open_participants
    resource.party.handle(ev.SlotFreed(offer.offer_id, None), 1)
    assert not resource.party.is_releasing(offer.offer_id)
    assert not resource.party.has_open_participants


def test_what_is_asked_of_an_unknown_slot_is_refused_by_name(resource: Any) -> None:
    body = ContractChange("a7", 0, "o7", "alice", "res", "bank", 1, reason="no")
    (sent,) = resource.hear("alice", Signed(body, ("alice",), "text"), conversation="r7")
    refused = sent.message.content
    assert (refused.agreement_id, refused.code) == ("a7", "unknown_agreement")
    assert refused.detail
    assert (sent.message.in_reply_to, sent.message.conversation_id) == ("w", "r7")
    (sent,) = resource.hear("alice", c.Acceptance("r7", "o7"), conversation="r7")
    assert (sent.message.in_reply_to, sent.message.conversation_id) == ("w", "r7")
