"""Rounds of bidding as their owner sees them: who is called, who answers what and when, and how the bidding ends."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.called_terms import terms_digest
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.instant import HOUR, MILLISECOND, SECOND
from ramp.model.machine_terms import StaticNeeds
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus, ResourceRefusal, RoundRecord
from ramp.protocol.progress import ApprovalAsked, RoundClosed, RoundOpened
from ramp.protocol.timing import Timing
from ramp.protocol.user.evaluator import lowest_bids
from ramp.protocol.user.voting import REQUEST_ENDED
from tests.unit.protocol.conftest import UNIT, contents, messages, reports

NOW = 5 * SECOND
MS = MILLISECOND


def open_round(one: Any, *resources: str, units: int = 1, **options: Any) -> list[Any]:
    wanted = tuple(replace(UNIT, number=number) for number in range(1, units + 1))
    return list(one.open(*resources, units=wanted, now=NOW, **options))


def propose(one: Any, resource: str, price: int, now: int, number: int = 1) -> list[Any]:
    offer = one.offer(resource, price)
    if number > 1:  # no id comes twice
        offer = replace(offer, offer_id=f"{offer.offer_id}-round{number}")
    return list(one.propose(resource, offer, round_number=number, now=now))


def refuse(one: Any, resource: str, code: RefusalCode, now: int, number: int = 1) -> list[Any]:
    content = c.Proposal("r1", number, refusals=(Refusal(1, code),))
    return list(one.hear(resource, content, now, performative=Performative.REFUSE))


def test_a_round_is_told_when_it_opens_and_as_it_went_when_it_closes(alice: Any) -> None:
    effects = open_round(alice, "res1", "res2", "res3", rounds=2, round_time=4 * SECOND)
    assert reports(effects, RoundOpened) == [RoundOpened("r1", 1, ((1, 70),), 3)]
    assert [each.receiver for each in messages(effects, c.CallForProposals)] == ["res1", "res2", "res3"]
    assert propose(alice, "res1", 60, NOW + 200 * MS) == []
    assert refuse(alice, "res2", RefusalCode.CORES_TAKEN, NOW + 300 * MS) == []
    again = alice.tick(alice.party.deadline)
    assert [each.receiver for each in messages(again, c.CallForProposals)] == ["res3"]
    effects = alice.tick(NOW + 4 * SECOND)
    offer = alice.offer("res1", 60)
    refusals = (
        ResourceRefusal("res2", Refusal(1, RefusalCode.CORES_TAKEN)),
        ResourceRefusal("res3", Refusal(1, RefusalCode.NO_ANSWER)),
    )
    bid = c.Bid(1, "res1", 60)
    record = RoundRecord(1, ((1, 70),), (offer,), (bid,), refusals, 4 * SECOND)
    answered = (("res1", 200 * MS), ("res2", 300 * MS))
    opened = RoundOpened("r1", 2, ((1, 60),), 3)
    assert reports(effects, RoundClosed, RoundOpened) == [RoundClosed("r1", record, ((1, bid),), answered, 1), opened]
    # res3 is called again, and not waited for
    propose(alice, "res1", 59, NOW + 5 * SECOND, 2)
    (closed,) = reports(refuse(alice, "res2", RefusalCode.CORES_TAKEN, NOW + 6 * SECOND, 2), RoundClosed)
    assert (closed.record.duration, closed.record.round_number) == (2 * SECOND, 2)
    assert [each.resource for each in closed.record.refusals] == ["res2", "res3"]


def test_who_does_not_understand_a_call_has_refused_every_unit(alice: Any) -> None:
    open_round(alice, "res1", "res2", units=2, rounds=1)
    assert alice.hear("res9", c.NotUnderstood("what?"), NOW + SECOND) == []  # was not asked
    alice.hear("res1", c.NotUnderstood("garbled"), NOW + SECOND)
    (closed,) = reports(alice.hear("res2", c.NotUnderstood("garbled"), NOW + SECOND), RoundClosed)
    assert closed.record.refusals == tuple(
        ResourceRefusal(resource, Refusal(number, RefusalCode.PLUGIN_FAILED, detail="garbled"))
        for resource in ("res1", "res2")
        for number in (1, 2)
    )


def test_who_was_silent_in_a_round_in_which_all_were_is_waited_for_again(alice: Any) -> None:
    """The line was down, not everybody: the first voice does not end the next round for all."""
    open_round(alice, "res1", "res2", rounds=2, round_time=4 * SECOND)
    while not reports(alice.tick(alice.party.deadline), RoundClosed):
        assert alice.party.deadline <= NOW + 4 * SECOND
    assert propose(alice, "res1", 60, NOW + 5 * SECOND, 2) == []
    assert reports(propose(alice, "res2", 60, NOW + 5 * SECOND, 2), RoundClosed)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("declined", "the user declined the offers"),
        ("late", "the offers were not approved in time"),
        ("withdrawn", "the user withdrew the request"),
    ],
)
def test_offers_that_are_not_approved_are_rejected_and_only_the_owner_reads_why(
    act: str, reason: str, alice: Any
) -> None:
    open_round(alice, "res1", rounds=1, approval=ev.Approval.ASK)
    alice.command(ev.OffersApproved("r1", True), NOW)  # of nothing yet
    assert contents(propose(alice, "res1", 60, NOW)) == []
    assert alice.party.deadline == NOW + Timing().approval_limit
    if act == "late":
        effects = alice.tick(NOW + Timing().approval_limit)
    else:
        effects = alice.command(
            ev.OffersApproved("r1", False) if act == "declined" else ev.RequestWithdrawn("r1"), NOW + SECOND
        )
    assert contents(effects) == [c.Rejection("r1", "offer-res1-1", REQUEST_ENDED)]
    assert (alice.outcome.status, alice.outcome.reason) == (RequestStatus.REJECTED, reason)


def test_an_offer_that_does_not_meet_the_request_stands_beside_its_sellers_refusals(alice: Any) -> None:
    open_round(alice, "res1", units=2, rounds=1)
    content = c.Proposal("r1", 1, (alice.offer("res1", 71),), (Refusal(2, RefusalCode.CORES_TAKEN),))
    (closed,) = reports(alice.hear("res1", content, NOW, performative=Performative.PROPOSE), RoundClosed)
    assert [(each.refusal.unit, each.refusal.code) for each in closed.record.refusals] == [
        (2, RefusalCode.CORES_TAKEN),
        (1, RefusalCode.BAD_PRICE),
    ]


def test_answers_that_show_that_calls_were_lost_have_others_repeated(alice: Any) -> None:
    names = [f"res{number}" for number in range(1, 10)]
    open_round(alice, *names)
    repeated = messages(alice.tick(alice.party.deadline), c.CallForProposals)
    assert [each.receiver for each in repeated] == ["res9", "res8"]
    again = messages(propose(alice, "res9", 60, NOW + 2 * SECOND), c.CallForProposals)
    assert [each.receiver for each in again] == ["res7", "res6"]


@pytest.mark.parametrize("changes", [{"resource": "res2"}, {"request_id": "r2"}, {"unit": 2}], ids=str)
def test_an_offer_that_is_none_of_the_round_is_rejected_and_counts_for_nothing(
    changes: dict[str, Any], alice: Any
) -> None:
    open_round(alice, "res1", "res3", rounds=1)
    effects = alice.propose("res1", replace(alice.offer("res1", 60), **changes), now=NOW)
    why = "the offer names another resource, request or unit"
    assert contents(effects) == [c.Rejection("r1", "offer-res1-1", why)]
    (closed,) = reports(refuse(alice, "res3", RefusalCode.CORES_TAKEN, NOW), RoundClosed)
    assert closed.record.offers == ()


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({}, True),
        ({"cores": 15}, False),
        ({"start": 4 * HOUR}, False),
        ({"start": 4 * HOUR - 1}, True),
    ],
)
def test_a_best_offer_must_still_be_of_some_use(changes: dict[str, Any], taken: bool, alice: Any) -> None:
    """Too late by an hour, but of the cores that are wanted, and for some time."""
    open_round(alice, "res1", rounds=1)
    refuse(alice, "res1", RefusalCode.PRICE, NOW)
    offer = replace(alice.offer("res1", 60), **{"start": 3 * HOUR, "end": 4 * HOUR, **changes})
    alice.propose("res1", offer, round_number=2, now=NOW)
    assert [unit.offer for unit in alice.outcome.units] == ([offer] if taken else [])


def test_offers_are_ranked_and_asked_again_by_their_cost_for_the_cores_asked(alice: Any) -> None:
    """17 for 64 cores costs more than 30 for the 16 asked, and is called 68; 18 is above the limit."""
    open_round(alice, "res1", "res2", "res3", rounds=2)
    whole = replace(alice.offer("res1", 17), cores=64)
    alice.propose("res1", whole, now=NOW)
    alice.propose("res3", replace(alice.offer("res3", 18), cores=64), now=NOW)
    effects = propose(alice, "res2", 30, NOW)
    (closed, opened) = reports(effects, RoundClosed, RoundOpened)
    assert [(each.resource, each.refusal.code) for each in closed.record.refusals] == [("res3", RefusalCode.BAD_PRICE)]
    shown = (c.Bid(1, "res1", 68), c.Bid(1, "res3", 72), c.Bid(1, "res2", 30))
    assert (closed.record.bids, closed.best, opened.asked) == (shown, ((1, shown[2]),), ((1, 30),))
    assert shown in [each.content.bids for each in messages(effects, c.CallForProposals)]


@pytest.mark.parametrize(("units", "share"), [(1, 5), (2, 5), (100, 4), (500, 1)])
def test_the_next_call_shows_the_lowest_bids_of_each_unit_in_order_of_arrival(units: int, share: int) -> None:
    """At most 400 in all."""
    bids = [c.Bid(unit, f"res{number}", 50 - number) for number in range(7) for unit in range(1, units + 1)]
    assert lowest_bids(bids) == tuple(bids[-share * units :][:400])


def test_who_was_silent_once_is_waited_for_again_after_answering(alice: Any) -> None:
    open_round(alice, "res1", "res2", rounds=3, round_time=4 * SECOND)
    propose(alice, "res1", 60, NOW)
    assert reports(alice.tick(NOW + 4 * SECOND), RoundClosed)
    now = NOW + 5 * SECOND
    assert reports(propose(alice, "res2", 59, now, 2), RoundClosed) == []
    assert reports(propose(alice, "res1", 58, now, 2), RoundClosed)
    assert reports(propose(alice, "res1", 57, now, 3), RoundClosed) == []
    assert reports(propose(alice, "res2", 56, now, 3), RoundClosed)


def test_who_has_refused_for_good_is_not_called_again_and_shown_as_refusing(alice: Any) -> None:
    open_round(alice, "res1", "res2", rounds=2)
    refuse(alice, "res1", RefusalCode.MACHINE_TOO_SMALL, NOW)
    effects = propose(alice, "res2", 60, NOW)
    assert [each.receiver for each in messages(effects)] == ["res2"]
    (closed,) = reports(propose(alice, "res2", 59, NOW, 2), RoundClosed)
    assert closed.record.refusals == (ResourceRefusal("res1", Refusal(1, RefusalCode.MACHINE_TOO_SMALL)),)


def unmet(one: Any, *offers: Any, units: int = 1, **options: Any) -> list[Any]:
    """Nobody meets the request; in the extra round res1 makes its best offers."""
    open_round(one, "res1", units=units, **options)
    refused = tuple(Refusal(number, RefusalCode.PRICE) for number in range(1, units + 1))
    one.hear("res1", c.Proposal("r1", 1, refusals=refused), NOW, performative=Performative.REFUSE)
    return list(one.propose("res1", *offers, round_number=2, now=NOW))


def late_offer(one: Any, unit: int = 1) -> Any:
    return replace(one.offer("res1", 60, unit), start=3 * HOUR, end=4 * HOUR)


def test_an_approved_best_offer_is_bought_as_one_that_does_not_meet_the_request(alice: Any) -> None:
    offer = late_offer(alice)
    effects = unmet(alice, offer, approval=ev.Approval.ASK)
    (asked,) = reports(effects, ApprovalAsked)
    assert (asked.offers, asked.meets) == ((offer,), (False,))
    alice.command(ev.OffersApproved("r1", True))
    alice.grant()
    alice.vote()
    alice.hear("res1", alice.proof())
    (unit,) = alice.outcome.units
    assert (alice.outcome.status, unit.offer, unit.meets_request) == (RequestStatus.COMMITTED, offer, False)


def test_best_offers_are_shown_as_such_where_nothing_is_bought(alice: Any) -> None:
    offer = late_offer(alice)
    unmet(alice, offer)
    (unit,) = alice.outcome.units
    assert alice.outcome.status is RequestStatus.NO_OFFERS
    assert (unit.offer, unit.meets_request, unit.paid) == (offer, False, None)
    assert alice.outcome.reason == "no offer meets the request for unit 1; the best other offers are shown"


def test_who_could_serve_after_all_is_called(alice: Any) -> None:
    """The terms are looked at again: a directory that is wrong about what they mean keeps nobody out."""
    unfit = tuple(c.UnfitAgent(name, (StaticTerms(cores),)) for name, cores in (("big", 1024), ("mite", 8)))
    (query,) = contents(alice.submit(UNIT, replace(UNIT, number=2)))
    assert query.needs == (StaticNeeds(16),)
    effects = alice.hear("directory", c.DirectoryListing("r1", RESOURCE_SERVICE, ("res",), unfit=unfit))
    assert [each.receiver for each in messages(effects)] == ["big", "res"]


WEST, SOUTH = "west1@west.example", "south1@south.example"
THERE = replace(UNIT, sites=("west.example",))


def test_only_resources_of_the_sites_are_called_and_the_others_stand_in_the_round(alice: Any) -> None:
    effects = alice.open(SOUTH, WEST, units=(THERE,))
    assert [each.receiver for each in messages(effects, c.CallForProposals)] == [WEST]
    effects = alice.propose(WEST, alice.offer(WEST, 60))
    (closed,) = reports(effects, RoundClosed)
    (told,) = closed.record.refusals
    assert (told.resource, told.refusal.code, told.refusal.nearest) == (SOUTH, RefusalCode.OTHER_SITE, "south.example")
    assert "west.example" in told.refusal.detail
    (accepted,) = messages(effects, c.Acceptance)
    assert accepted.receiver == WEST


def test_an_offer_of_another_site_wins_nothing(alice: Any) -> None:
    """Its seller is called for another unit, and offers the cheapest for this one too."""
    elsewhere = replace(THERE, number=2, sites=("south.example",))
    effects = alice.open(SOUTH, WEST, units=(THERE, elsewhere))
    assert {each.receiver for each in messages(effects, c.CallForProposals)} == {WEST, SOUTH}
    own = replace(alice.offer(SOUTH, 50), offer_id="own", unit=2)
    sneaked = replace(alice.offer(SOUTH, 1), offer_id="sneaked")
    effects = alice.propose(SOUTH, own, sneaked)
    (rejected,) = contents(effects, c.Rejection)
    assert rejected.offer_id == "sneaked"
    assert "south1@south.example is not at west.example" in rejected.reason
    effects = alice.propose(WEST, alice.offer(WEST, 60))
    assert {each.receiver: each.content.offer_id for each in messages(effects, c.Acceptance)} == {
        WEST: alice.offer(WEST, 60).offer_id,
        SOUTH: "own",
    }


def test_terms_of_requests_without_sites_are_digested_as_before() -> None:
    """By hand: the JSON that `terms_digest` describes, without a word of sites."""
    import hashlib
    from base64 import urlsafe_b64encode

    text = (
        '{"rule":"","unit":{"cores":{"is":"TotalCores","total":16},"deadline":10800000000,"not_before":3600000000,'
        '"number":1,"wall_time":3600000000}}'
    )
    by_hand = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    assert terms_digest(replace(THERE, sites=None), "") == by_hand
    assert terms_digest(THERE, "") != by_hand


def test_nor_is_it_bought_as_the_best_offer_where_none_meets_the_request(alice: Any) -> None:
    elsewhere = replace(THERE, number=2, sites=("south.example",))
    alice.open(SOUTH, WEST, units=(THERE, elsewhere), approval=ev.Approval.BEST_OFFER)
    own = replace(alice.offer(SOUTH, 50), offer_id="own", unit=2)
    alice.propose(SOUTH, own)
    effects = alice.hear(WEST, c.Proposal("r1", 1, (), (Refusal(1, RefusalCode.CORES_TAKEN),)),
                         performative=Performative.REFUSE)  # fmt: skip
    assert all(each.best_offer for each in (*contents(effects, c.CallForProposals), *reports(effects, RoundOpened)))
    assert SOUTH in [each.receiver for each in messages(effects, c.CallForProposals)]
    sneaked = replace(alice.offer(SOUTH, 99), offer_id="sneaked")  # above the price asked, as best offers are
    effects = alice.propose(SOUTH, sneaked, round_number=2)
    assert [each.content.offer_id for each in messages(effects, c.Rejection)] == ["sneaked"]
