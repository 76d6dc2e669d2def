"""When a resource's slot ends by itself, whatever machine and bank do, and what is written of why it ended."""

from __future__ import annotations

from typing import Any

from ramp.model import contents as c
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import RefusalCode
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import SlotReleased


def accepted_and_in_doubt(resource: Any) -> tuple[Any, list[Any]]:
    """An offer is accepted, and the machine does not say whether it has set the slot aside."""
    resource.answered = lambda effects, now: (
        effects
        if any(isinstance(each, fx.HoldSlot) for each in effects)
        else type(resource).answered(resource, effects, now)
    )
    offer, effects = resource.hold()
    assert [type(each) for each in effects][-1] is fx.HoldSlot
    return offer, effects


def test_a_slot_that_is_in_doubt_ends_with_its_hold(resource: Any, written: Any) -> None:
    offer, _ = accepted_and_in_doubt(resource)
    until = resource.party.participants[offer.offer_id].until
    resource.party.handle(ev.SlotHeld(offer.offer_id, ev.MachineInDoubt("it hangs")), SECOND)
    released: list[Any] = []
    while not released:
        now = resource.party.deadline
        assert now <= until
        released = [each for each in written(resource.party.tick(now)) if isinstance(each, SlotReleased)]
    assert (now, released[0].code) == (until, RefusalCode.HOLD_EXPIRED)


def test_a_hold_that_was_begun_before_a_restart_ends_at_its_deadline(
    resource: Any, restarted_resource: Any, written: Any
) -> None:
    offer, effects = accepted_and_in_doubt(resource)
    until = resource.party.participants[offer.offer_id].until
    again, _ = restarted_resource([], SECOND)
    asked = again.party.recover(written(effects), SECOND)  # and the machine does not answer at all
    assert fx.HoldSlot in map(type, asked)
    assert again.party.participants[offer.offer_id].deadline == until
    (released,) = written(again.party.tick(until))
    assert (type(released), released.code) == (SlotReleased, RefusalCode.HOLD_EXPIRED)


def test_who_let_a_hold_go_is_on_record_with_its_seal(resource: Any, written: Any) -> None:
    offer, _ = resource.hold()
    (released,) = written(resource.hear("alice", c.HoldCancelled("r1", offer.offer_id)))
    assert (released.code, released.agreement_id, released.refund) == (RefusalCode.CANCELLED, "", 0)
    assert released.seal.signer == "alice"


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
