"""A user asks for the votes of the best: again where nobody answers, the next best where one refuses, and says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MILLISECOND, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.timing import Timing
from ramp.protocol.user.voting import INSTEAD_MAX

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
RESOURCES = ("res1", "res2", "res3")


def asked(effects: list[Any]) -> list[str]:
    return [
        each.message.receiver
        for each in effects
        if isinstance(each, fx.Send) and isinstance(each.message.content, c.Acceptance)
    ]


def advanced(effects: list[Any]) -> list[UnitAdvanced]:
    told = [each.progress for each in effects if isinstance(each, fx.Report)]
    return [each for each in told if isinstance(each, UnitAdvanced)]


def auction_of_three(alice: Any) -> list[Any]:
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), ev.AuctionOptions(rounds=1)))
    alice.hear("directory", c.DirectoryListing("r1", "resource-trader", RESOURCES))
    effects: list[Any] = []
    for number, resource in enumerate(RESOURCES):
        proposal = c.Proposal("r1", 1, (alice.offer(resource, 50 + number),))
        effects = alice.hear(resource, proposal, performative=Performative.PROPOSE)
    return effects


def refuse(alice: Any, resource: str, detail: str = "") -> list[Any]:
    refused = c.HoldRefused("r1", f"offer-{resource}-1", RefusalCode.SLOT_TAKEN, detail)
    return alice.hear(resource, refused)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("detail", "told"), [("sold meanwhile", "sold meanwhile"), ("", "slot_taken")])
def test_a_refusal_is_reported_with_its_reason(alice: Any, detail: str, told: str) -> None:
    alice.auction()
    assert advanced(refuse(alice, "res1", detail))[0] == UnitAdvanced("r1", 1, "res1", "refused", told)


def test_a_slow_refusal_is_a_round_trip_like_any_other(alice: Any) -> None:
    """The next best is given more time before it is asked again than if the refusal had come at once (RFC 6298)."""
    pauses = []
    for slow in (0, 900 * MILLISECOND):
        one = type(alice)()
        auction_of_three(one)
        refused = c.HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN)
        assert asked(one.hear("res1", refused, slow)) == ["res2"]
        pauses.append(one.party.deadline - slow)
    assert pauses[0] < pauses[1]


MARGIN = Timing().decision_margin


def kinds(effects: list[Any]) -> list[type]:
    return [type(each.message.content) for each in effects if isinstance(each, fx.Send)]


@pytest.mark.parametrize(("left", "going_on"), [(MARGIN - 1, False), (MARGIN + 2 * SECOND, True)])
def test_a_hold_that_is_told_again_to_be_shorter_counts_as_that(
    left: int, going_on: bool, alice_with_two_units: Any
) -> None:
    """A seller whose clock was wrong ends its hold sooner than it said at first, and says so when it is asked again."""
    alice = alice_with_two_units
    alice.auction(same_resource=False)
    assert kinds(alice.grant("res1", 1, hold_for=HOUR)) == []
    assert kinds(alice.grant("res1", 1, now=SECOND, hold_for=left)) == []
    said = kinds(alice.grant("res2", 2, now=SECOND))
    assert said == ([c.PaymentOrder] if going_on else [c.HoldCancelled, c.HoldCancelled])


def test_a_hold_that_is_told_again_to_be_longer_counts_as_before(alice_with_two_units: Any) -> None:
    alice = alice_with_two_units
    alice.auction(same_resource=False)
    alice.grant("res1", 1, hold_for=MARGIN)
    alice.grant("res1", 1, hold_for=HOUR)
    assert kinds(alice.grant("res2", 2, now=SECOND)) == [c.HoldCancelled, c.HoldCancelled]


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
    sent = [each.message.content for each in effects if isinstance(each, fx.Send)]
    return [each.offer_id for each in sent if isinstance(each, c.Acceptance)]


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
    options = ev.AuctionOptions(rounds=1, preference=preference)
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), options))
    alice.hear("directory", c.DirectoryListing("r1", "resource-trader", RESOURCES))
    for number, resource in enumerate(RESOURCES):
        proposal = c.Proposal("r1", 1, (alice.offer(resource, 50 + number),))
        alice.hear(resource, proposal, performative=Performative.PROPOSE)
    taken = alice.offer("res1", 50)
    late = replace(taken, offer_id="offer-res1-2", start=taken.start + HOUR, end=taken.end + HOUR)
    refused = c.HoldRefused("r1", taken.offer_id, RefusalCode.SLOT_TAKEN, "", (late,))
    said = asked_for(alice.hear("res1", refused))
    for offer_id in order[:-1]:
        said += asked_for(alice.hear(offer_id[6:10], c.HoldRefused("r1", offer_id, RefusalCode.SLOT_TAKEN)))
    assert said == order
