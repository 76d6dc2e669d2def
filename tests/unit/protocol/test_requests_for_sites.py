"""Requests that name sites: who is called, who is told why not, and what becomes of an offer from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.called_terms import terms_digest
from ramp.model.instant import HOUR
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.protocol import events as ev
from ramp.protocol.progress import RoundClosed
from tests.unit.protocol.conftest import contents, messages, reports

WEST, SOUTH = "west1@west.example", "south1@south.example"
UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR, sites=("west.example",))


def test_only_resources_of_the_sites_are_called_and_the_others_stand_in_the_round(alice: Any) -> None:
    effects = alice.open(SOUTH, WEST, units=(UNIT,))
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
    elsewhere = replace(UNIT, number=2, sites=("south.example",))
    effects = alice.open(SOUTH, WEST, units=(UNIT, elsewhere))
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
        '{"rule":"","unit":{"cores":{"count":16,"is":"TotalCores"},"deadline":10800000000,"not_before":3600000000,'
        '"number":1,"wall_time":3600000000}}'
    )
    by_hand = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    assert terms_digest(replace(UNIT, sites=None), "") == by_hand
    assert terms_digest(UNIT, "") != by_hand


def test_nor_is_it_bought_as_the_best_offer_where_none_meets_the_request(alice: Any) -> None:
    elsewhere = replace(UNIT, number=2, sites=("south.example",))
    alice.open(SOUTH, WEST, units=(UNIT, elsewhere), approval=ev.Approval.BEST_OFFER)
    own = replace(alice.offer(SOUTH, 50), offer_id="own", unit=2)
    alice.propose(SOUTH, own)
    effects = alice.hear(WEST, c.Proposal("r1", 1, (), (Refusal(1, RefusalCode.CORES_TAKEN),)),
                         performative=Performative.REFUSE)  # fmt: skip
    assert all(each.content.best_offer for each in messages(effects, c.CallForProposals))
    assert SOUTH in [each.receiver for each in messages(effects, c.CallForProposals)]
    sneaked = replace(alice.offer(SOUTH, 99), offer_id="sneaked")  # above the price asked, as best offers are
    effects = alice.propose(SOUTH, sneaked, round_number=2)
    assert [each.content.offer_id for each in messages(effects, c.Rejection)] == ["sneaked"]
