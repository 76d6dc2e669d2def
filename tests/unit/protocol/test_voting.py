"""The vote on the slots: who is asked when, what is told of it, how long a hold counts, and slots offered instead."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, TotalCores
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.voting import INSTEAD_MAX, Voting
from tests.unit.protocol.conftest import contents, messages, reports, restarted_user

RESOURCES = ("res1", "res2", "res3")
MARGIN = Timing().decision_margin


def kinds(effects: list[Any]) -> list[type]:
    return [type(each) for each in contents(effects)]


def auction_of_three(alice: Any, **options: Any) -> None:
    alice.open(*RESOURCES, **options)
    for number, resource in enumerate(RESOURCES):
        alice.propose(resource, alice.offer(resource, 50 + number))


def test_a_slow_refusal_is_a_round_trip_like_any_other(alice: Any) -> None:
    """The next best is given more time before it is asked again than if the refusal had come at once (RFC 6298)."""
    pauses = []
    for slow in (0, 900 * MILLISECOND):
        one = type(alice)()
        auction_of_three(one)
        refused = c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN)
        assert [each.receiver for each in messages(one.hear("res1", refused, slow))] == ["res2"]
        pauses.append(one.party.deadline - slow)
    assert pauses[0] < pauses[1]


@pytest.mark.parametrize(
    ("first", "again", "going_on"),
    [(HOUR, MARGIN - 1, False), (HOUR, MARGIN + 2 * SECOND, True), (MARGIN, HOUR, False)],
    ids=["too short", "shorter", "longer"],
)
def test_of_a_hold_that_is_told_again_the_shorter_time_counts(
    first: int, again: int, going_on: bool, alice_with_two_units: Any
) -> None:
    """A seller whose clock was wrong ends its hold sooner than it said at first, and says so when it is asked again."""
    alice = alice_with_two_units
    alice.auction(same_resource=False)
    assert kinds(alice.grant("res1", 1, hold_for=first)) == []
    assert kinds(alice.grant("res1", 1, now=SECOND, hold_for=again)) == []
    said = kinds(alice.grant("res2", 2, now=SECOND))
    assert said == ([c.PaymentOrder] if going_on else [c.HoldCancelled, c.HoldCancelled])
    assert going_on or kinds(alice.tick(alice.party.deadline)) == said


@pytest.mark.parametrize(("left", "decided"), [(MARGIN, True), (MARGIN - 1, False)])
def test_a_hold_that_is_told_to_be_shorter_while_the_bank_is_asked_counts_as_that(
    left: int, decided: bool, alice: Any
) -> None:
    alice.auction()
    alice.grant(hold_for=HOUR)
    assert kinds(alice.grant(now=SECOND, hold_for=left)) == []
    said = kinds(alice.vote(now=SECOND))
    assert said == ([c.Commitment] if decided else [c.HoldCancelled, c.OrderWithdrawal])


def test_who_waits_for_the_bank_waits_no_longer_than_the_hold_that_is_left(alice: Any) -> None:
    alice.auction()
    alice.grant(hold_for=HOUR)
    alice.grant(now=SECOND, hold_for=MARGIN + SECOND)
    assert alice.party.deadline <= 2 * SECOND
    assert c.OrderWithdrawal in kinds(alice.tick(2 * SECOND))


# -- a seller's next slot instead of one that was taken --------------------------------------------------------------


def _instead(alice: Any, **changes: Any) -> list[Any]:
    """What alice asks after res1 has refused its offer and offered its next hour instead, or something else."""
    auction_of_three(alice)
    taken = alice.offer("res1", 50)
    later = {"offer_id": "offer-res1-2", "start": taken.start + HOUR, "end": taken.end + HOUR, "placement": "M2"}
    offer = replace(taken, **(later | changes))
    refused = c.HoldRefused("r1", taken.offer_id, RefusalCode.SLOT_TAKEN, "no longer free", (offer,))
    return asked_for(alice.hear("res1", refused))


def asked_for(effects: list[Any]) -> list[str]:
    return [each.offer_id for each in contents(effects, c.Acceptance)]


def test_the_next_slot_of_a_seller_goes_before_the_next_seller(alice: Any) -> None:
    assert _instead(alice) == ["offer-res1-2"]
    assert asked_for(refuse_offer(alice, "offer-res1-2")) == ["offer-res2-1"]


def refuse_offer(alice: Any, offer_id: str) -> list[Any]:
    return alice.hear("res1", c.HoldRefused("r1", offer_id, RefusalCode.SLOT_TAKEN))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu_hour_cost": 51},
        {"cores": 17},
        {"cores": 15},
        {"end": 4 * HOUR},
        {"start": 3 * HOUR, "end": 4 * HOUR},
        {"start": 0, "end": HOUR},
        {"resource": "res3"},
        {"request_id": "r2"},
        {"unit": 2},
        {"offer_id": "offer-res1-1"},
        {"offer_id": "offer-res2-1"},
        {"source": "log"},
        {"terms": "x" * 43, "asked": 1},
    ],
    ids=str,
)
def test_a_slot_instead_must_cost_the_same_and_meet_the_request(alice: Any, changes: dict[str, Any]) -> None:
    assert _instead(alice, **changes) == ["offer-res2-1"]


def test_a_seller_cannot_put_a_buyer_off_for_ever(alice: Any) -> None:
    assert _instead(alice) == ["offer-res1-2"]
    taken = alice.offer("res1", 50)
    for number in range(3, 3 + INSTEAD_MAX):
        offer = replace(taken, offer_id=f"offer-res1-{number}")
        refused = c.HoldRefused("r1", f"offer-res1-{number - 1}", RefusalCode.SLOT_TAKEN, "", (offer,))
        last = asked_for(alice.hear("res1", refused))
    assert last == ["offer-res2-1"]


@pytest.mark.parametrize(
    ("preference", "order"),
    [
        (ev.Preference.CHEAPEST, ["offer-res1-2", "offer-res2-1", "offer-res3-1"]),
        (ev.Preference.SOONEST, ["offer-res2-1", "offer-res3-1", "offer-res1-2"]),
    ],
)
def test_a_later_slot_instead_does_not_go_before_better_offers(
    alice: Any, preference: ev.Preference, order: list[str]
) -> None:
    """Before: a seller that had promised an early slot sold a late one, though others had what was promised."""
    auction_of_three(alice, preference=preference)
    taken = alice.offer("res1", 50)
    late = replace(taken, offer_id="offer-res1-2", start=taken.start + HOUR, end=taken.end + HOUR)
    refused = c.HoldRefused("r1", taken.offer_id, RefusalCode.SLOT_TAKEN, "", (late,))
    said = asked_for(alice.hear("res1", refused))
    for offer_id in order[:-1]:
        said += asked_for(alice.hear(offer_id[6:10], c.HoldRefused("r1", offer_id, RefusalCode.SLOT_TAKEN)))
    assert said == order


def told(effects: list[Any]) -> list[tuple[int, str, str, str]]:
    return [(each.unit, each.resource, each.stage, each.detail) for each in reports(effects, UnitAdvanced)]


def test_owners_are_told_who_was_asked_and_what_each_said(alice: Any) -> None:
    alice.open(*RESOURCES)
    offers = [alice.offer(resource, 50 + number) for number, resource in enumerate(RESOURCES)]
    effects = [each for offer in offers for each in alice.propose(offer.resource, offer)]
    for number, detail in ((1, ""), (2, "full")):
        refused = c.HoldRefused("r1", f"offer-res{number}-1", RefusalCode.SLOT_TAKEN, detail)
        effects += alice.hear(f"res{number}", refused)
    assert told(effects + alice.grant("res3"))[:6] == [
        (1, "res1", "asking", ""),
        (1, "res1", "refused", "slot_taken"),
        (1, "res2", "asking", ""),
        (1, "res2", "refused", "full"),
        (1, "res3", "asking", ""),
        (1, "res3", "agreed", "R-offer-res3-1"),
    ]


def test_who_refuses_without_a_word_is_quoted_with_its_code(alice: Any) -> None:
    alice.open("res1")
    alice.propose("res1", alice.offer("res1", 50))
    alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN))
    assert alice.outcome.reason.endswith("the last refusal: slot_taken")


def test_a_hold_counts_from_its_question_also_when_the_clock_is_set_meanwhile(alice: Any) -> None:
    """It must last for exactly the margin when the vote comes."""
    now = 5 * SECOND
    alice.open("res1", now=now)
    alice.propose("res1", alice.offer("res1", 50), now=now)
    alice.party.clock_set(HOUR)
    assert kinds(alice.grant(now=now + HOUR, hold_for=MARGIN)) == [c.PaymentOrder]


@pytest.mark.parametrize(("minutes", "order"), [(30, ["1-2", "2-1", "3-1"]), (15, ["2-1", "1-2", "3-1"])])
def test_a_slot_instead_goes_before_its_equals_and_behind_what_is_better(
    alice: Any, minutes: int, order: list[str]
) -> None:
    """The slot instead begins half an hour later than the one that was taken."""

    def offered(resource: str, later: int, **changes: Any) -> Any:
        offer = alice.offer(resource, 50)
        return replace(offer, start=offer.start + later * MINUTE, end=offer.end + later * MINUTE, **changes)

    alice.open(*RESOURCES, preference=ev.Preference.SOONEST)
    for resource, later in (("res1", 0), ("res2", minutes), ("res3", 45)):
        alice.propose(resource, offered(resource, later))
    late = offered("res1", 30, offer_id="offer-res1-2")
    said = asked_for(alice.hear("res1", c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN, "", (late,))))
    for name in order[:-1]:
        said += asked_for(alice.hear(f"res{name[0]}", c.HoldRefused("r1", f"offer-res{name}", RefusalCode.SLOT_TAKEN)))
    assert said == [f"offer-res{name}" for name in order]


def test_a_slot_that_is_held_is_kept_while_another_unit_goes_on(alice_with_two_units: Any) -> None:
    """Unit 1 is held; res2 is silent until its limit, and res1 is asked for unit 2 as well."""
    one = alice_with_two_units
    one.auction(same_resource=False)
    one.grant("res1", 1)
    let_go: list[str] = []
    while not let_go:
        assert one.party.deadline <= Pace(Timing()).vote_limit
        let_go = [each.offer_id for each in contents(one.tick(one.party.deadline), c.HoldCancelled)]
    assert let_go == ["offer-res2-2"]
    one.grant("res1", 2, now=Pace(Timing()).vote_limit)
    assert kinds(one.tick(one.party.deadline)) == [c.HoldCancelled, c.PaymentOrder]  # both due again at one instant


def test_what_is_no_vote_is_refused_and_who_was_not_understood_answers_nothing(alice: Any) -> None:
    voting = Voting("r1", {1: (alice.offer("res1", 50),)}, user="alice", pace=Pace(Timing()))
    voting.start(0)
    assert voting.on_message(Message(Performative.NOT_UNDERSTOOD, "res1", "alice", "r1", c.NotUnderstood("?")), 1) == []
    wrong = Message(Performative.INFORM, "res1", "alice", "r1", c.MachineStatus("q", "{}"))
    with pytest.raises(RemoteProtocolError, match="MachineStatus is not a vote"):
        voting.on_message(wrong, 1)


@pytest.mark.parametrize("decided", [False, True])
def test_a_vote_that_comes_after_a_restart_is_let_go_unless_it_is_being_bought(decided: bool, alice: Any) -> None:
    alice.go("auction", "grant")
    if decided:
        alice.vote()
    again, _ = restarted_user(alice.journal, SECOND)
    expected = [] if decided else [c.HoldCancelled("r1", "offer-res1-1")]
    assert contents(again.grant(now=SECOND)) == expected


def test_a_hold_that_was_never_asked_for_is_let_go(alice: Any) -> None:
    alice.open("res1")
    assert contents(alice.grant()) == [c.HoldCancelled("r1", "offer-res1-1")]


# -- a slot that was taken meanwhile ---------------------------------------------------------------------------------


def taken(resource: Any, answer: Any) -> tuple[Any, list[Any]]:
    """An offer whose slot the machine no longer has, and what the resource does when its next quote is `answer`."""
    offer = resource.call().content.offers[0]
    resource.answered = lambda effects, now: effects  # from now on the machine answers what the test says
    resource.hear("alice", c.Acceptance("r1", offer.offer_id))
    gone = Refusal(1, RefusalCode.SLOT_TAKEN, detail="no longer free")
    asked = resource.party.handle(ev.SlotHeld(offer.offer_id, gone), 0)
    assert messages(asked) == []
    assert resource.hear("alice", c.Acceptance("r1", offer.offer_id)) == [], "the vote is still to come"
    (quote,) = [each for each in asked if isinstance(each, fx.QuoteSlots)]
    return offer, resource.party.handle(ev.SlotsQuoted(quote.call_id, (answer,)), 0)


def test_where_others_set_the_price_no_slot_is_offered_instead(resource: Any) -> None:
    unit = replace(resource.unit, cpu_hour_cost=70, cores=TotalCores(16))
    call = c.CallForProposals("r1", 1, RequestForQuotation((unit,)), rule="second-price")
    (offer,) = contents(resource.hear("alice", call))[0].offers
    resource.answered = lambda effects, now: effects
    resource.hear("alice", c.Acceptance("r1", offer.offer_id))
    gone = Refusal(1, RefusalCode.SLOT_TAKEN, detail="no longer free")
    assert kinds(resource.party.handle(ev.SlotHeld(offer.offer_id, gone), 0)) == [c.HoldRefused]


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


def test_every_unit_is_asked_again_at_its_own_time(alice_with_two_units: Any) -> None:
    """Unit 2 is asked of the next best half a second later; unit 1's silence does not wait for that."""
    one = alice_with_two_units
    one.auction(same_resource=False)
    one.hear("res2", c.HoldRefused("r1", "offer-res2-2", RefusalCode.SLOT_TAKEN), SECOND // 2)
    asked = [each.offer_id for each in contents(one.tick(one.party.deadline))]
    assert asked == ["offer-res1-1"]


def test_a_hold_is_cancelled_again_at_its_own_time(alice: Any) -> None:
    """The silent res1's, before res3 is asked again: that was asked half a second later."""
    auction_of_three(alice)
    alice.tick(Pace(Timing()).vote_limit)
    refused = c.HoldRefused("r1", "offer-res2-1", RefusalCode.SLOT_TAKEN)
    alice.hear("res2", refused, Pace(Timing()).vote_limit + SECOND // 2)
    assert contents(alice.tick(alice.party.deadline)) == [c.HoldCancelled("r1", "offer-res1-1")]
