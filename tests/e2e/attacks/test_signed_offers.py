"""A market with `signed_offers = true`: calls, proposals and rejections are sealed too, or dropped."""

from __future__ import annotations

import asyncio

import pytest
from certified import Buyer, Seller, address, fresh, sealed_by_hand, unsealed
from standing import restarts, standing
from swarm_books import Books
from swarm_market import SHORT_TIMING, in_hours, unit

from ramp.ledger.account import AccountKind
from ramp.model.acl import Performative
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.instant import SECOND
from ramp.model.request import RequestForQuotation
from ramp.model.seal import Role

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(
        kind=kind,
        users={"alice": 1_000_000},
        accounts=["mallory", "moriarty"],
        per_process=4,
        signed_offers=True,
        timing={**SHORT_TIMING, "lease_s": 30},
    )
    market.up()
    market.wait_ready()
    return market


def test_the_market_works(market):
    begin = in_hours(1)
    outcome = market.buy("alice", "request-signed", [unit(1, 8, begin), unit(2, 100, begin)])
    assert outcome["status"] == "committed", outcome
    assert [len(record["offers"]) + len(record["refusals"]) for record in outcome["rounds"]] == [8, 8]
    back = market.ask("alice", {"verb": "cancel", "agreement_id": outcome["units"][0]["agreement_id"]})
    assert back["outcome"]["done"], back
    Books(market).come_right()


async def test_calls_are_answered_only_with_a_users_seal(market, rogues):
    started = restarts(market)
    mallory = await Buyer.enter(market, rogues, "mallory", Role.USER)
    moriarty = await Seller.enter(market, rogues, "moriarty", Role.RESOURCE)
    wish = RequestForQuotation((unit(1, 8, in_hours(3)),))

    def call(member, sender=""):
        request_id = fresh("request")
        return member.message(P.CFP, "small1", CallForProposals(request_id, 1, wish), request_id, sender=sender)

    for encoded in (
        unsealed(call(mallory)),
        sealed_by_hand(call(mallory, "alice"), mallory.keys, mallory.name),
        sealed_by_hand(call(mallory, "alice"), mallory.keys, address("alice")),
    ):
        await mallory.put(encoded, "small1")
    await moriarty.put(sealed_by_hand(call(moriarty), moriarty.keys, moriarty.name), "small1")
    for member in (mallory, moriarty):
        await member.is_read_by("small1")
        assert not [each for each in member.heard if isinstance(each.content, Proposal)]
    request_id = fresh("request")
    await mallory.say(P.CFP, "small1", CallForProposals(request_id, 1, wish), request_id)
    proposal = await mallory.answer(request_id, Proposal)
    assert proposal.content.offers
    assert (proposal.seal.signer, proposal.seal.role) == (address("small1"), Role.RESOURCE)
    assert restarts(market) == started
    for member in (mallory, moriarty):
        member.leave()


@pytest.mark.parametrize("sealing", [False, True], ids=["unsealed", "sealed"])
async def test_proposals_count_only_with_a_resources_seal(market, rogues, sealing):
    """The cheapest resource bids without seal, and is not heard; with one it would have won."""
    moriarty = await Seller.enter(market, rogues, "moriarty", Role.RESOURCE)
    moriarty.open_account(AccountKind.RESOURCE)
    moriarty.signs_offers = sealing
    await moriarty.register()
    before = await asyncio.to_thread(standing, market)
    options = {"rounds": 1, "round_time": 4 * SECOND, "quote_only": True}
    outcome = await asyncio.to_thread(market.buy, "alice", fresh("request"), [unit(1, 8, in_hours(5))], **options)
    assert outcome["status"] == "quoted", outcome
    (won,) = outcome["units"]
    assert won["offer"]["resource"] == (moriarty.name if sealing else "small1@localhost")
    silent = {each["resource"] for each in outcome["rounds"][0]["refusals"] if each["refusal"]["code"] == "no_answer"}
    assert silent == (set() if sealing else {moriarty.name})
    await moriarty.deregister()
    moriarty.leave()
    after = await asyncio.to_thread(standing, market)
    assert set(before.changes(after)) == {"requests", "listed"}
