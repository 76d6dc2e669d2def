"""A resource that drains sells nothing new and keeps what it has sold; the directory knows."""

from __future__ import annotations

from typing import Any

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.offer import RefusalCode
from ramp.model.services import DRAINING_SERVICE, RESOURCE_SERVICE
from ramp.protocol import effects as fx
from ramp.protocol.resource.seller import DRAINING_DETAIL, PriceRange
from ramp.protocol.user.final_refusals import FOR_GOOD

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
