"""The vote on the slots: what is told of it, and how long a hold must last to count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.voting import Voting

MARGIN = Timing().decision_margin


def told(effects: list[Any]) -> list[tuple[int, str, str, str]]:
    found = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [(each.unit, each.resource, each.stage, each.detail) for each in found if isinstance(each, UnitAdvanced)]


def test_the_owner_sees_who_is_asked_and_what_each_says(alice_with_two_units: Any) -> None:
    one = alice_with_two_units
    assert told(one.auction(same_resource=False)) == [(1, "res1", "asking", ""), (2, "res2", "asking", "")]
    assert told(one.grant("res2", 2)) == [(2, "res2", "agreed", "R-offer-res2-2")]
    refusal = c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN)
    assert told(one.hear("res1", refusal)) == [(1, "res1", "refused", "slot_taken"), (1, "res2", "asking", "")]


def test_where_nothing_is_launched_a_slot_is_held_for_no_account(resource: Any) -> None:
    _, effects = resource.hold()
    assert [each.account for each in effects if isinstance(each, fx.HoldSlot)] == [""]


def test_a_hold_is_counted_from_the_question_on(alice: Any) -> None:
    """The answer may have been long on its way."""
    alice.auction()
    alice.grant(now=2 * SECOND, hold_for=MARGIN + SECOND)
    assert alice.confirmation is None


def test_a_slot_that_is_held_is_kept_while_another_unit_goes_on(alice_with_two_units: Any) -> None:
    """Unit 1 is held; res2 is silent until its limit, and res1 is asked for unit 2 as well."""
    one = alice_with_two_units
    one.auction(same_resource=False)
    one.grant("res1", 1)
    let_go: list[str] = []
    while not let_go:
        assert one.party.deadline <= Pace(Timing()).vote_limit
        sent = [each.message.content for each in one.tick(one.party.deadline) if isinstance(each, fx.Send)]
        let_go = [each.offer_id for each in sent if isinstance(each, c.HoldCancelled)]
    assert let_go == ["offer-res2-2"]


def test_what_is_no_vote_is_refused_and_who_was_not_understood_answers_nothing(alice: Any) -> None:
    voting = Voting("r1", {1: (alice.offer("res1", 50),)}, user="alice", pace=Pace(Timing()))
    voting.start(0)
    assert voting.handle(Message(Performative.NOT_UNDERSTOOD, "res1", "alice", "r1", c.NotUnderstood("what?")), 1) == []
    wrong = Message(Performative.INFORM, "res1", "alice", "r1", c.MachineStatus("q", "{}"))
    with pytest.raises(RemoteProtocolError, match="MachineStatus is not a vote"):
        voting.handle(wrong, 1)


@pytest.mark.parametrize("decided", [False, True])
def test_a_vote_that_comes_after_a_restart_is_let_go_unless_it_is_being_bought(
    decided: bool, alice: Any, said: Any, restarted_user: Any
) -> None:
    alice.auction()
    alice.grant()
    if decided:
        alice.vote()
    again, _ = restarted_user(alice.journal, SECOND)
    expected = [] if decided else [c.HoldCancelled("r1", "offer-res1-1")]
    assert said(again.grant(now=SECOND)) == expected


# -- a slot that was taken meanwhile ---------------------------------------------------------------------------------


def taken(resource: Any, answer: Any) -> tuple[Any, list[Any]]:
    """An offer whose slot the machine no longer has, and what the resource does when its next quote is `answer`."""
    offer = resource.call().content.offers[0]
    resource.answered = lambda effects, now: effects  # from now on the machine answers what the test says
    resource.hear("alice", c.Acceptance("r1", offer.offer_id))
    gone = Refusal(1, RefusalCode.SLOT_TAKEN, detail="no longer free")
    asked = resource.party.handle(ev.SlotHeld(offer.offer_id, gone), 0)
    assert not [each for each in asked if isinstance(each, fx.Send)]
    assert resource.hear("alice", c.Acceptance("r1", offer.offer_id)) == [], "the vote is still to come"
    (quote,) = [each for each in asked if isinstance(each, fx.QuoteSlots)]
    return offer, resource.party.handle(ev.SlotsQuoted(quote.call_id, (answer,)), 0)


def test_the_vote_no_brings_the_machines_next_slot_at_the_same_price(resource: Any) -> None:
    offer, (sent,) = taken(resource, Slot(HOUR, 2 * HOUR, 16, 0.75, "M9"))
    refused = sent.message.content
    assert (refused.offer_id, refused.code, refused.detail) == (
        offer.offer_id,
        RefusalCode.SLOT_TAKEN,
        "no longer free",
    )
    (instead,) = refused.instead
    assert instead.offer_id != offer.offer_id
    assert instead == replace(offer, offer_id=instead.offer_id, load=0.75, placement="M9")
    effects = resource.hear("alice", c.Acceptance("r1", instead.offer_id))
    assert [each.slot.placement for each in effects if isinstance(each, fx.HoldSlot)] == ["M9"]
    (again,) = resource.hear("alice", c.Acceptance("r1", offer.offer_id))
    assert (again.message.content.code, again.message.content.instead) == (RefusalCode.SLOT_TAKEN, ())


@pytest.mark.parametrize(
    "answer",
    [
        Refusal(1, RefusalCode.CORES_TAKEN),
        Slot(HOUR, 2 * HOUR, 32, 0.5),
        Slot(HOUR, 3 * HOUR, 16, 0.5),
        Slot(3 * HOUR, 4 * HOUR, 16, 0.5),
    ],
    ids=["none is free", "other cores", "longer", "after the deadline"],
)
def test_the_vote_is_a_plain_no_without_a_like_slot_in_the_window(resource: Any, answer: Any) -> None:
    _, (sent,) = taken(resource, answer)
    assert (sent.message.content.code, sent.message.content.instead) == (RefusalCode.SLOT_TAKEN, ())
