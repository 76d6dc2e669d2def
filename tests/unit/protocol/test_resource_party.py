"""The Resource Agent against copies, strangers and lies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Performative
from ramp.model.agreement import Cancellation, Signed
from ramp.model.contents import (
    Acceptance,
    CancellationDone,
    CancellationRefused,
    Confirmed,
    Failed,
    HoldCancelled,
    HoldGranted,
    HoldRefused,
    PaymentMade,
    RefundMade,
    RefundRefused,
    Rejection,
    Settled,
)
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol.records import CancellationReceived, HoldIntended, HoldMade
from ramp.protocol.tables import ParticipantState


def contents(effects: list[fx.Effect]) -> list[Any]:
    return [effect.message.content for effect in effects if isinstance(effect, fx.Send)]


def test_a_repeated_call_gets_the_same_answer(resource: Any) -> None:
    assert resource.call() == resource.call()


def test_a_new_round_gets_a_new_offer_unless_the_own_one_stands(resource: Any) -> None:
    first = resource.call(1, 70)
    assert first.content.offers[0].cpu_hour_cost == 65
    standing = resource.call(2, 65)
    assert standing.performative is Performative.REFUSE
    assert standing.content.refusals[0].code is RefusalCode.OWN_OFFER_STANDS
    assert resource.call(3, 60).content.offers[0].cpu_hour_cost == 55


def test_another_request_of_the_user_knows_nothing_of_the_first(resource: Any) -> None:
    resource.call(1, 70)
    assert resource.call(1, 65, request_id="r2").content.offers[0].cpu_hour_cost == 60


def test_the_vote_is_durable_before_it_leaves(resource: Any) -> None:
    _, effects = resource.hold()
    kinds = [type(effect.record if isinstance(effect, fx.Persist) else effect) for effect in effects]
    assert kinds == [HoldIntended, fx.HoldSlot, HoldMade, fx.Send]


def test_a_rejected_offer_cannot_be_accepted(resource: Any) -> None:
    offer = resource.call().content.offers[0]
    assert resource.hear(Performative.REJECT_PROPOSAL, Rejection("r1", offer.offer_id, "lost")) == []
    (refused,) = contents(resource.hear(Performative.ACCEPT_PROPOSAL, Acceptance("r1", offer.offer_id)))
    assert (type(refused), refused.code) == (HoldRefused, RefusalCode.UNKNOWN_OFFER)


def test_an_offer_is_good_only_for_whom_it_was_made(resource: Any) -> None:
    offer = resource.call().content.offers[0]
    (refused,) = contents(
        resource.hear(Performative.ACCEPT_PROPOSAL, Acceptance("r1", offer.offer_id), sender="mallory")
    )
    assert refused.code is RefusalCode.UNKNOWN_OFFER


def test_a_repeated_acceptance_gets_the_same_vote(resource: Any) -> None:
    offer, effects = resource.hold()
    (again,) = contents(resource.hear(Performative.ACCEPT_PROPOSAL, Acceptance("r1", offer.offer_id)))
    assert again == contents(effects)[-1]
    assert isinstance(again, HoldGranted)


@pytest.mark.parametrize(
    "change",
    [{"bank": "mallorys-bank"}, {"cost": 1}, {"reservation_id": "R-other"}, {"resource": "other"}],
)
def test_an_agreement_must_be_what_was_agreed(resource: Any, change: dict[str, Any]) -> None:
    offer, _ = resource.hold()
    (failed,) = contents(resource.hear(Performative.CONFIRM, resource.agreement(offer, **change)))
    assert (type(failed), failed.code) == (Failed, RefusalCode.BAD_AGREEMENT)
    assert resource.party.participants[offer.offer_id].state is ParticipantState.HELD


@pytest.mark.parametrize("signers", [(), ("mallory",), ("alice", "mallory")])
def test_an_agreement_must_bear_the_buyers_signature_and_no_other(resource: Any, signers: tuple[str, ...]) -> None:
    offer, _ = resource.hold()
    with pytest.raises(RemoteProtocolError, match="signed by the buyer"):
        resource.hear(Performative.CONFIRM, replace(resource.agreement(offer), signers=signers))


def test_one_agreement_id_buys_one_slot(resource: Any) -> None:
    first, _ = resource.hold("r1")
    second, _ = resource.hold("r2")
    resource.hear(Performative.CONFIRM, resource.agreement(first))
    (failed,) = contents(resource.hear(Performative.CONFIRM, resource.agreement(second)))
    assert (type(failed), failed.code) == (Failed, RefusalCode.BAD_AGREEMENT)
    assert resource.party.participants[second.offer_id].state is ParticipantState.HELD


def sold(resource: Any) -> Any:
    offer, _ = resource.hold()
    resource.hear(Performative.CONFIRM, resource.agreement(offer))
    acknowledged = contents(resource.confirm(offer))
    assert isinstance(acknowledged[0], Confirmed)
    (settled,) = contents(resource.hear(Performative.AGREE, PaymentMade("a1", "t1", offer.cost), sender="bank"))
    assert isinstance(settled, Settled)
    return offer


def test_only_the_bank_speaks_for_the_bank(resource: Any) -> None:
    offer, _ = resource.hold()
    resource.hear(Performative.CONFIRM, resource.agreement(offer))
    resource.confirm(offer)
    with pytest.raises(RemoteProtocolError, match="mallory speaks for bank"):
        resource.hear(Performative.AGREE, PaymentMade("a1", "t1", offer.cost), sender="mallory")


def cancellation(offer: Any, agreement_id: str = "a1") -> Signed:
    body = Cancellation("c1", agreement_id, offer.offer_id, "alice", "res", False, "not needed", 0)
    return Signed(body, signers=("alice",))


def test_a_cancellation_names_the_agreement_of_its_slot(resource: Any) -> None:
    offer = sold(resource)
    (refused,) = contents(resource.hear(Performative.CANCEL, cancellation(offer, "a-of-somebody-else")))
    assert (type(refused), refused.code) == (CancellationRefused, "unknown_agreement")
    assert resource.party.participants[offer.offer_id].state is ParticipantState.SOLD


def test_a_confirmed_unit_is_not_let_go_by_a_plain_cancel(resource: Any) -> None:
    offer = sold(resource)
    with pytest.raises(RemoteProtocolError, match="signed cancellation only"):
        resource.hear(Performative.CANCEL, HoldCancelled("r1", offer.offer_id))


def test_a_refund_after_a_refusal_releases_the_slot(resource: Any) -> None:
    offer = sold(resource)
    effects = resource.hear(Performative.CANCEL, cancellation(offer))
    assert isinstance(effects[0], fx.Persist)
    assert isinstance(effects[0].record, CancellationReceived)
    (refused,) = contents(resource.hear(Performative.REFUSE, RefundRefused("a1", "insufficient_funds"), sender="bank"))
    assert isinstance(refused, CancellationRefused)
    effects = resource.hear(Performative.AGREE, RefundMade("a1", "t2", offer.cost), sender="bank")
    assert contents(effects) == [CancellationDone("a1", offer.cost)]
    assert fx.ReleaseSlot(offer.offer_id) in effects


def test_every_copy_of_a_message_after_the_end_gets_the_last_answer(resource: Any) -> None:
    offer = sold(resource)
    resource.hear(Performative.CANCEL, cancellation(offer))
    resource.hear(Performative.AGREE, RefundMade("a1", "t2", offer.cost), sender="bank")
    assert contents(resource.hear(Performative.CANCEL, cancellation(offer))) == [CancellationDone("a1", offer.cost)]
    assert contents(resource.hear(Performative.AGREE, RefundMade("a1", "t2", offer.cost), sender="bank")) == []
    (failed,) = contents(resource.hear(Performative.CONFIRM, resource.agreement(offer)))
    assert (type(failed), failed.code) == (Failed, RefusalCode.CANCELLED)
    (refused,) = contents(resource.hear(Performative.ACCEPT_PROPOSAL, Acceptance("r1", offer.offer_id)))
    assert (type(refused), refused.code) == (HoldRefused, RefusalCode.CANCELLED)


def test_what_is_nothing_for_a_resource_is_the_peers_fault(resource: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="Settled is nothing for a resource"):
        resource.hear(
            Performative.INFORM, Settled("a1", "o", "t", Signed(cancellation(resource.call().content.offers[0]).body))
        )
