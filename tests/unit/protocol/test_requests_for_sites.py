"""Requests that name sites: who is called, who is told why not, and what becomes of an offer from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.called_terms import terms_digest
from ramp.model.instant import HOUR
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import RoundClosed

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
