"""A resource that drains sells nothing new and keeps what it has sold; the directory knows."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.agents.standing import slots_kept
from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.offer import RefusalCode
from ramp.model.services import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.seller import DRAINING_DETAIL, PriceRange, Seller
from ramp.protocol.timing import Timing
from ramp.protocol.user.final_refusals import FOR_GOOD
from simulation.market.counted_ids import CountedIds

PRICES = PriceRange(70, 20, 4)


def words(effects: list[fx.Effect]) -> list[tuple[Performative, str]]:
    sent = [each.message for each in effects if isinstance(each, fx.Send)]
    return [(each.performative, each.content.service) for each in sent if hasattr(each.content, "service")]


def test_every_unit_of_a_call_is_refused_with_the_code(resource: Any) -> None:
    resource.party.set_selling(PRICES, draining=True, now=0)
    answer = resource.call()
    assert answer.performative is Performative.REFUSE
    assert [(each.code, each.detail) for each in answer.content.refusals] == [(RefusalCode.DRAINING, DRAINING_DETAIL)]
    assert RefusalCode.DRAINING in FOR_GOOD, "nobody calls it again in that auction"


def test_an_offer_made_before_cannot_be_accepted_any_more(resource: Any, said: Any) -> None:
    offer = resource.call().content.offers[0]
    resource.party.set_selling(PRICES, draining=True, now=0)
    (refused,) = said(resource.hear("alice", c.Acceptance("r1", offer.offer_id)))
    assert (type(refused), refused.code, refused.detail) == (c.HoldRefused, RefusalCode.DRAINING, DRAINING_DETAIL)


def test_what_is_held_is_sold_and_what_is_sold_stays(resource: Any) -> None:
    """A vote binds until the hold's deadline."""
    offer, _ = resource.hold()
    resource.party.set_selling(PRICES, draining=True, now=0)
    assert slots_kept(resource.party, 0) == 1
    resource.commit(offer)
    resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost))
    assert resource.state(offer) == "sold"
    assert slots_kept(resource.party, 0) == 1
    assert slots_kept(resource.party, offer.end) == 0


def test_the_directory_is_told_at_once_and_by_every_heartbeat(resource: Any) -> None:
    now = resource.party.deadline or 0
    both = [(Performative.SUBSCRIBE, RESOURCE_SERVICE), (Performative.SUBSCRIBE, DRAINING_SERVICE)]
    assert words(resource.party.set_selling(PRICES, draining=True, now=now)) == both
    assert words(resource.party.set_selling(PRICES, draining=True, now=now)) == []
    assert words(resource.party.tick(resource.party.deadline)) == both
    assert words(resource.party.set_selling(PRICES, draining=False, now=now)) == [
        (Performative.CANCEL, DRAINING_SERVICE)
    ]
    assert words(resource.party.tick(resource.party.deadline)) == both[:1]


def test_who_drains_from_the_start_says_so_with_its_first_word() -> None:
    seller = Seller(
        "res",
        terms=StaticTerms(64),
        prices=PRICES,
        source="synthetic",
        ids=CountedIds("res"),
        timing=Timing(),
        draining=True,
    )
    party = ResourceParty("res", directories=["directory"], bank="bank", seller=seller, timing=Timing())
    assert words(party.start(0)) == [
        (Performative.SUBSCRIBE, RESOURCE_SERVICE),
        (Performative.SUBSCRIBE, DRAINING_SERVICE),
    ]


def test_who_leaves_while_it_drains_leaves_both_lists(resource: Any) -> None:
    resource.party.set_selling(PRICES, draining=True, now=0)
    assert words(resource.party.leave(0)) == [
        (Performative.CANCEL, DRAINING_SERVICE),
        (Performative.CANCEL, RESOURCE_SERVICE),
    ]


def test_it_sells_again_at_the_prices_that_are_set(resource: Any) -> None:
    resource.party.set_selling(PRICES, draining=True, now=0)
    resource.party.set_selling(PriceRange(50, 40, 1), draining=False, now=0)
    assert resource.call(1, 60).content.offers[0].cpu_hour_cost >= 40
    resource.party.set_selling(PriceRange(500, 400, 1), draining=False, now=0)
    refusal = resource.call(1, 60, request_id="r2").content.refusals[0]
    assert (refusal.code, refusal.nearest) == (RefusalCode.PRICE, "400 credits/core-hour")


@pytest.mark.parametrize("service", [RESOURCE_SERVICE, DRAINING_SERVICE])
def test_an_owner_may_ask_the_directory_for_either_list(alice: Any, service: str) -> None:
    (asked,) = alice.command(ev.ResourcesAsked("l", service))
    assert asked.message.content == c.DirectoryQuery("l", service)
