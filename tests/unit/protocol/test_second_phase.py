"""After the decision: what is reported when a unit fails, what a late word changes, and what a slot's record says."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.records import OrderClosed, SlotReleased, VoidAsked


def advanced(effects: list[Any]) -> list[tuple[int, str, str]]:
    told = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [(each.unit, each.stage, each.detail) for each in told if isinstance(each, UnitAdvanced)]


def posted(one: Any) -> c.OrderPosted:
    made = one.confirmation.agreements
    payments = tuple(c.PaymentMade(each.agreement_id, f"payment:{each.agreement_id}", each.cost) for each in made)
    return c.OrderPosted(made[0].order_id, payments)


# -- the user --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("detail", "told"), [("it burns", "it burns"), ("", "hold_expired")])
def test_a_refused_agreement_fails_its_unit_and_voids_the_order(
    detail: str, told: str, alice: Any, said: Any, written: Any
) -> None:
    alice.committed()
    effects = alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.HOLD_EXPIRED, detail))
    assert advanced(effects) == [(1, "failed", told)]
    (asked,) = [each for each in written(effects) if isinstance(each, VoidAsked)]
    assert asked.reason == f"unit 1 failed at res1: {told}"
    assert [type(each) for each in said(effects)] == [c.OrderWithdrawal]


def test_who_has_confirmed_can_refuse_no_more(alice: Any) -> None:
    alice.committed()
    agreement = alice.confirmation.agreements[0]
    alice.hear("res1", c.Confirmed(agreement.agreement_id, agreement.offer.offer_id))
    assert alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.HOLD_EXPIRED)) == []


def test_a_refusal_while_the_order_is_being_voided_changes_nothing(alice_with_two_units: Any) -> None:
    one = alice_with_two_units
    one.committed(same_resource=False)
    one.hear("res1", one.failed())
    assert one.hear("res2", c.HoldRefused("r1", "offer-res2-2", RefusalCode.HOLD_EXPIRED)) == []


def test_an_order_that_is_posted_after_all_settles_the_units_that_have_not_failed(
    alice_with_two_units: Any, said: Any, written: Any
) -> None:
    one = alice_with_two_units
    one.committed(same_resource=False)
    one.hear("res1", one.failed())
    effects = one.hear("bank", posted(one))
    assert advanced(effects) == [(2, "settled", "")]
    (closed,) = [each for each in written(effects) if isinstance(each, OrderClosed)]
    assert closed.detail == ""  # it is no failure
    (claim,) = [each for each in said(effects) if isinstance(each, Signed)]
    assert claim.body.agreement_id == one.confirmation.agreements[0].agreement_id
    assert {unit.agreement_id for unit in one.outcome.units} == {
        each.agreement_id for each in one.party.agreements.values()
    }


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


def test_what_the_bank_is_asked_is_answered_under_the_agreement(resource: Any) -> None:
    offer, _ = resource.hold()
    sent = [each.message for each in resource.commit(offer) if isinstance(each, fx.Send)]
    (asked,) = [each for each in sent if each.receiver == "bank"]
    assert asked.reply_with == "a1"


@pytest.mark.parametrize("agreed", [False, True])
def test_the_record_of_a_release_names_the_agreement_if_there_was_one(
    agreed: bool, resource: Any, written: Any
) -> None:
    offer, _ = resource.hold()
    if agreed:
        resource.commit(offer)
        effects = resource.hear("bank", c.PaymentRefused("a1", "withdrawn"), 2)
    else:
        effects = resource.hear("alice", c.HoldCancelled("r1", offer.offer_id), 2)
    (released,) = [each for each in written(effects) if isinstance(each, SlotReleased)]
    assert (released.agreement_id, released.refund) == ("a1" if agreed else "", 0)


def test_the_record_of_a_slot_that_was_lost_has_the_banks_word_on_the_refund(resource: Any, written: Any) -> None:
    offer = resource.sell()
    effects = resource.party.handle(ev.SlotsTended(((offer.offer_id, "it burns"),), ()), 1)
    told = [(each.message.receiver, each.message.in_reply_to) for each in effects if isinstance(each, fx.Send)]
    assert told == [("alice", offer.offer_id), ("bank", "")]  # to the bank it is the answer to nothing
    (released,) = written(resource.hear("bank", c.ChangePosted("a1", 0, "t2", -offer.cost), 2))
    assert isinstance(released, SlotReleased)
    assert (released.code, released.detail, released.refund) == (RefusalCode.PLUGIN_FAILED, "it burns", offer.cost)
    assert released.seal is not None
    assert (released.seal.signer, released.seal.signed_at) == ("bank", 2)


def test_a_sale_is_confirmed_by_the_bank_when_the_slot_begins(resource: Any, said: Any) -> None:
    """Before that nothing is asked, and afterwards until the bank has answered."""
    offer = resource.sell()
    participant = resource.party.participants[offer.offer_id]
    assert participant.deadline == offer.start
    (asked,) = said(participant.on_timer(offer.start))
    assert asked == c.PaymentQuery("a1")
    assert offer.start < participant.deadline <= offer.start + MINUTE
    resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost), offer.start + SECOND)
    assert participant.deadline is None


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


def test_one_slot_that_is_let_go_makes_room_for_one(resource_with: Any, said: Any) -> None:
    """The buyer's other slots count on; what was never held, or is let go again, changes nothing."""
    one = resource_with(holds_max=2)
    (first, _), (second, _) = one.hold("r1", cores=2), one.hold("r2", cores=2)
    assert said(one.hold("r3", cores=2)[1])[-1].code is RefusalCode.QUOTA
    for _ in range(2):
        one.hear("alice", c.HoldCancelled("r2", second.offer_id), conversation="r2")
    assert isinstance(said(one.hold("r4", cores=2)[1])[-1], c.HoldGranted)
    assert said(one.hold("r5", cores=2)[1])[-1].code is RefusalCode.QUOTA
    assert one.state(first) == "held"
