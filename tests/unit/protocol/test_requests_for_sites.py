"""Requests that name sites: who is called, who is told why not, and what becomes of an offer from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.called_terms import terms_digest
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.shortcoming import shortcoming, site_of
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RoundClosed
from ramp.protocol.records import RequestConcluded
from ramp.protocol.resource.seller import PriceRange, Seller
from ramp.protocol.timing import Timing
from simulation.market.counted_ids import CountedIds

WEST, SOUTH = "west1@west.example", "south1@south.example"
UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR, sites=("west.example",))


def messages(effects: list[Any], kind: type) -> list[Message]:
    found = [each.message for each in effects if isinstance(each, fx.Send)]
    return [each for each in found if isinstance(each.content, kind)]


def opened(alice: Any, *units: RequestUnit, resources: tuple[str, ...] = (SOUTH, WEST), **options: Any) -> list[Any]:
    alice.command(ev.RequestSubmitted("r1", RequestForQuotation(units), ev.AuctionOptions(**options)), 0)
    return list(alice.hear("directory", c.DirectoryListing("r1", "resource-trader", resources)))


def closed(effects: list[Any]) -> RoundClosed:
    (found,) = [
        each.progress for each in effects if isinstance(each, fx.Report) and isinstance(each.progress, RoundClosed)
    ]
    return found


def test_only_resources_of_the_sites_are_called_and_the_others_stand_in_the_round(alice: Any) -> None:
    effects = opened(alice, UNIT, rounds=1)
    assert [each.receiver for each in messages(effects, c.CallForProposals)] == [WEST]
    effects = alice.hear(WEST, c.Proposal("r1", 1, (alice.offer(WEST, 60),)), performative=Performative.PROPOSE)
    (told,) = closed(effects).record.refusals
    assert (told.resource, told.refusal.code, told.refusal.nearest) == (SOUTH, RefusalCode.OTHER_SITE, "south.example")
    assert "west.example" in told.refusal.detail
    (accepted,) = messages(effects, c.Acceptance)
    assert accepted.receiver == WEST


def test_where_no_site_sells_the_request_ends_at_once_and_says_who_was_elsewhere(alice: Any) -> None:
    effects = opened(alice, replace(UNIT, sites=("east.example",)), round_time=60 * SECOND)
    assert messages(effects, c.CallForProposals) == []
    assert alice.party.deadline == 0  # and no round time is waited for
    effects = alice.tick(0)
    record = closed(effects).record
    assert {(each.resource, each.refusal.code) for each in record.refusals} == {
        (SOUTH, RefusalCode.OTHER_SITE),
        (WEST, RefusalCode.OTHER_SITE),
    }
    (ended,) = [
        each.record for each in effects if isinstance(each, fx.Persist) and isinstance(each.record, RequestConcluded)
    ]
    assert ended.outcome.status is RequestStatus.NO_OFFERS


def test_an_offer_of_another_site_wins_nothing(alice: Any) -> None:
    """Its seller is called for another unit, and offers the cheapest for this one too."""
    elsewhere = replace(UNIT, number=2, sites=("south.example",))
    effects = opened(alice, UNIT, elsewhere, rounds=1)
    assert {each.receiver for each in messages(effects, c.CallForProposals)} == {WEST, SOUTH}
    own = replace(alice.offer(SOUTH, 50), offer_id="own", unit=2)
    sneaked = replace(alice.offer(SOUTH, 1), offer_id="sneaked")
    effects = alice.hear(SOUTH, c.Proposal("r1", 1, (own, sneaked)), performative=Performative.PROPOSE)
    (rejected,) = [each.content for each in messages(effects, c.Rejection)]
    assert rejected.offer_id == "sneaked"
    assert "south1@south.example is not at west.example" in rejected.reason
    effects = alice.hear(WEST, c.Proposal("r1", 1, (alice.offer(WEST, 60),)), performative=Performative.PROPOSE)
    assert {each.receiver: each.content.offer_id for each in messages(effects, c.Acceptance)} == {
        WEST: alice.offer(WEST, 60).offer_id,
        SOUTH: "own",
    }


def test_nor_is_it_bought_as_the_best_offer_where_none_meets_the_request(alice: Any) -> None:
    elsewhere = replace(UNIT, number=2, sites=("south.example",))
    opened(alice, UNIT, elsewhere, rounds=1, approval=ev.Approval.BEST_OFFER)
    own = replace(alice.offer(SOUTH, 50), offer_id="own", unit=2)
    alice.hear(SOUTH, c.Proposal("r1", 1, (own,)), performative=Performative.PROPOSE)
    effects = alice.hear(WEST, c.Proposal("r1", 1, (), (Refusal(1, RefusalCode.CORES_TAKEN),)),
                         performative=Performative.REFUSE)  # fmt: skip
    assert all(each.content.best_offer for each in messages(effects, c.CallForProposals))
    assert SOUTH in [each.receiver for each in messages(effects, c.CallForProposals)]
    sneaked = replace(alice.offer(SOUTH, 99), offer_id="sneaked")  # above the price asked, as best offers are
    effects = alice.hear(SOUTH, c.Proposal("r1", 2, (sneaked,)), performative=Performative.PROPOSE)
    assert [each.content.offer_id for each in messages(effects, c.Rejection)] == ["sneaked"]


def test_a_seller_refuses_the_units_of_other_sites() -> None:
    terms, prices = StaticTerms(64), PriceRange(60, 20)
    seller = Seller(SOUTH, terms=terms, prices=prices, source="live", ids=CountedIds("s"), timing=Timing())
    units = (
        UNIT,
        replace(UNIT, number=2, sites=("west.example", "south.example")),
        replace(UNIT, number=3, sites=None),
    )
    call = c.CallForProposals("r1", 1, RequestForQuotation(units))
    (asked,) = seller.on_call(Message(Performative.CFP, "alice", SOUTH, "r1", call), call, 0)
    assert isinstance(asked, fx.QuoteSlots)
    assert [unit.number for unit in asked.units] == [2, 3]


def test_whoever_judges_an_offer_sees_its_site(alice: Any) -> None:
    offer = replace(alice.offer(SOUTH, 1), start=HOUR, end=2 * HOUR)
    assert "is not at west.example" in shortcoming(UNIT, offer)
    assert shortcoming(replace(UNIT, sites=("west.example", "south.example")), offer) == ""
    assert shortcoming(replace(UNIT, sites=None), offer) == ""


@pytest.mark.parametrize(
    ("name", "site"),
    [(WEST, "west.example"), ("big@South.Example", "south.example"), ("res1", ""), ("west.example@evil", "evil")],
)
def test_the_site_is_the_domain_of_the_name(name: str, site: str) -> None:
    assert site_of(name) == site


def test_terms_of_requests_without_sites_are_digested_as_before() -> None:
    """By hand: the JSON that `terms_digest` describes, without a word of sites."""
    import hashlib
    from base64 import urlsafe_b64encode

    text = (
        '{"rule":"","unit":{"cores":{"count":16,"is":"TotalCores"},"deadline":10800000000,"not_before":3600000000,'
        '"number":1,"wall_time":3600000000}}'
    )
    by_hand = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    assert terms_digest(replace(UNIT, sites=None), "") == by_hand
    assert terms_digest(UNIT, "") != by_hand
