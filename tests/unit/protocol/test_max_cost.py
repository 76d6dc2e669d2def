"""The greatest cost of a request: it binds when offers are chosen, and again when a next best one is held."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.model.acl import Message, Performative
from ramp.model.contents import (
    Acceptance,
    DirectoryListing,
    HoldCancelled,
    HoldGranted,
    HoldRefused,
    PaymentOrder,
    Proposal,
)
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.protocol.effects import Send
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.evaluator import over_limit
from ramp.protocol.user.voting import Voting
from simulation.market.virtual_notary import VirtualNotary


def offer(resource: str, price: int, unit: int = 1) -> Offer:
    return Offer(f"{resource}-{unit}", "r1", unit, resource, price, HOUR, 2 * HOUR, 10, 0.5, 10 * MINUTE)


CHEAP, DEAR, OTHER = offer("res1", 30), offer("res2", 40), offer("res1", 50, 2)
"""They cost 300, 400 and 500 credits."""


def said(resource: str, content: object) -> Message:
    message = Message(Performative.AGREE, resource, "alice", "r1", content, reply_with="w")
    return VirtualNotary(resource, Role.RESOURCE).seal(message, 0)


def sent(effects: list[object]) -> list[tuple[str, type]]:
    return [(each.message.receiver, type(each.message.content)) for each in effects if isinstance(each, Send)]


@pytest.mark.parametrize(
    ("offers", "limit", "told"),
    [
        ([CHEAP], None, ""),
        ([CHEAP], 30_000, ""),
        ([CHEAP], 29_999, "the offers cost 300.00 credits together, more than the limit of 299.99"),
        ([CHEAP, OTHER], 80_000, ""),
        ([CHEAP, OTHER], 79_999, "the offers cost 800.00 credits together, more than the limit of 799.99"),
    ],
)
def test_all_units_together_must_not_cost_more(offers: list[Offer], limit: int | None, told: str) -> None:
    assert over_limit([offer.cost for offer in offers], limit) == told


@pytest.mark.parametrize("limit", [40_000, 39_999, None])
def test_a_next_best_offer_that_is_too_dear_is_let_go(limit: int | None) -> None:
    voting = Voting("r1", {1: (CHEAP, DEAR)}, user="alice", pace=Pace(Timing()), max_cost=limit)
    assert sent(voting.start(0)) == [("res1", Acceptance)]
    refused = said("res1", HoldRefused("r1", CHEAP.offer_id, RefusalCode.SLOT_TAKEN, "gone"))
    assert sent(voting.handle(refused, 1)) == [("res2", Acceptance)]
    effects = voting.handle(said("res2", HoldGranted("r1", DEAR.offer_id, "res2.1", 10 * MINUTE)), 2)
    if limit == 39_999:
        assert sent(effects) == [("res2", HoldCancelled)]
        assert voting.result is None, "it waits until the hold is let go"
        voting.handle(said("res2", HoldCancelled("r1", DEAR.offer_id)), 3)
        assert voting.result.status is RequestStatus.REJECTED
        assert "400.00 credits together, more than the limit of 399.99" in voting.result.reason
    else:
        assert sent(effects) == []
        assert [held.offer for held in voting.result.held] == [DEAR]


@pytest.mark.parametrize(("limit", "bought"), [(96_000, True), (95_999, False)])
def test_a_purchase_hands_its_owners_limit_on_to_the_vote(alice: Any, limit: int, bought: bool) -> None:
    """res1 asks 800.00 credits and has sold its slot meanwhile; res2, who is asked next, wants 960.00."""
    unit = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
    wanted = RequestSubmitted("r1", RequestForQuotation((unit,)), AuctionOptions(rounds=1, max_cost=limit))
    alice.command(wanted)
    alice.hear("directory", DirectoryListing("r1", "resource-trader", ("res1", "res2")))
    for resource, price in (("res1", 50), ("res2", 60)):
        proposal = Proposal("r1", 1, (alice.offer(resource, price),))
        alice.hear(resource, proposal, performative=Performative.PROPOSE)
    alice.hear("res1", HoldRefused("r1", "offer-res1-1", RefusalCode.SLOT_TAKEN, "gone"))
    said_next = [type(each.message.content) for each in alice.grant("res2") if isinstance(each, Send)]
    assert said_next == ([PaymentOrder] if bought else [HoldCancelled])
