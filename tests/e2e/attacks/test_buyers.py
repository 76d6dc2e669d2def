"""Certified users who want compute for nothing (A1), or all of it without buying any (A6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from certified import fresh, sealed_by_hand
from standing import standing
from swarm_market import in_hours, unit

from ramp.model.acl import Performative
from ramp.model.agreement import Signed
from ramp.model.contents import (
    Commitment,
    Confirmed,
    FundsReserved,
    HoldGranted,
    HoldRefused,
    OrderRefused,
    OrderWithdrawal,
    Settled,
)
from ramp.model.instant import MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.protocol.agreement_terms import order_lines
from ramp.rfql.signing import seals
from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
QUOTAS = {"holds_max": 4, "cores_share_max": 0.5}
RICH = 100_000_000


@pytest.fixture(scope="module")
def market(module_market, kind):
    accounts = ["poor", "rich", "mallory"]
    market = module_market(kind=kind, users={"alice": 1_000_000}, accounts=accounts, quotas=QUOTAS, per_process=4)
    market.up()
    market.wait_ready()
    return market


def money(market, name):
    with LedgerStore.open(market.state.ledger) as ledger:
        assert ledger.audit() == []
        balance = ledger.balance(f"{name}@localhost")
        return balance.posted, balance.reserved


def firm(market, resource="small1"):
    return {reservation for reservation, is_firm in standing(market).reservations[resource] if is_firm}


def forged_vote(buyer, agreement, signer, sender):
    """A vote yes that the bank has not given, sealed with another's key."""
    lines = order_lines((agreement,))
    vote = FundsReserved(agreement.order_id, buyer.name, lines, MINUTE, agreement.valid_until, buyer.now)
    message = replace(buyer.message(P.AGREE, buyer.name, vote, agreement.request_id), sender=sender)
    encoded = sealed_by_hand(message, buyer.keys, signer)
    text = seals.SealedText(
        message.performative.value,
        "FundsReserved",
        sender,
        buyer.name,
        message.conversation_id,
        "",
        "",
        "",
        encoded.metadata["signed-at"],
        encoded.body,
        encoded.metadata["signature"],
        encoded.metadata["certificate"],
    ).text()
    return vote, Seal(sender, Role.BANK, buyer.name, message.conversation_id, buyer.now, text)


async def commit_and_read(buyer, agreement, vote, seal):
    """What has come of a commitment that the resource may also drop: everything it said."""
    signed = buyer.notary.sign(Signed(agreement), buyer.now)
    await buyer.say(P.CONFIRM, agreement.resource, Commitment(signed, vote, seal), agreement.request_id)
    await buyer.is_read_by(agreement.resource)
    return [type(each.content) for each in buyer.heard if each.conversation_id == agreement.request_id]


async def test_no_slot_is_firm_without_the_banks_own_vote_for_it(market, enter):
    """The free compute of A1: a user without money, with every vote but the right one."""
    poor, rich = await enter("poor", 100), await enter("rich", RICH)
    wish = unit(1, 8, in_hours(1))
    agreement = await poor.held("small1", wish)
    refused = await poor.order(agreement)
    assert isinstance(refused.content, OrderRefused)
    assert refused.content.code == "insufficient_funds"
    before = await asyncio.to_thread(standing, market)
    # somebody else's true vote, over an agreement of the same cost with the same resource
    others = await rich.held("small1", wish)
    others_vote = await rich.order(others)
    # a true vote of its own, over a cheaper slot: it has a credit
    cheap_wish = RequestUnit(1, 70, in_hours(2) + 90 * SECOND, TotalCores(1), in_hours(2), 90 * SECOND)
    cheap = await poor.held("small1", cheap_wish)
    cheap_vote = await poor.order(cheap)
    assert isinstance(cheap_vote.content, FundsReserved), cheap_vote.content
    votes = {
        "sealed with its own key as the bank": forged_vote(poor, agreement, poor.name, "bank@localhost"),
        "sealed as itself": forged_vote(poor, agreement, poor.name, poor.name),
        "of a resource": forged_vote(poor, agreement, "small1@localhost", "small1@localhost"),
        "somebody else's": (others_vote.content, others_vote.seal),
        "its own for another order": (cheap_vote.content, cheap_vote.seal),
        "changed": (replace(cheap_vote.content, order_id=agreement.order_id), cheap_vote.seal),
    }
    for name, (vote, seal) in votes.items():
        heard = await commit_and_read(poor, agreement, vote, seal)
        assert Confirmed not in heard, name
        assert Settled not in heard, name
        assert agreement.reservation_id not in await asyncio.to_thread(firm, market), name
    assert not market.state.agreement("small1", agreement.agreement_id).exists()
    for buyer, each in ((poor, agreement), (poor, cheap), (rich, others)):
        await buyer.let_go(each.offer)
    for buyer, each in ((poor, cheap), (rich, others)):
        await withdraw(buyer, each)
    assert money(market, "poor") == (100, 0)
    assert money(market, "rich") == (RICH, 0)
    after = await asyncio.to_thread(standing, market)
    assert after.reservations["small1"] == before.reservations["small1"] - {(agreement.reservation_id, False)}


async def withdraw(buyer, agreement):
    wish = OrderWithdrawal(agreement.order_id, agreement.valid_until, "not wanted")
    await buyer.say(P.REQUEST, "bank", wish, asked := fresh("void"))
    return (await buyer.answer(asked)).content


async def test_one_buyer_cannot_hold_a_machine_without_paying(market, enter):
    """A6: so many slots, and so many cores; others go on buying, and the one who pays may go on too."""
    mallory = await enter("mallory")
    granted, refused = [], []
    for number in range(8):  # 60 cores each: two fit into half of 256
        vote = await mallory.hold(offer := await mallory.offer("big1", unit(1, 60, in_hours(1 + number))))
        (granted if isinstance(vote, HoldGranted) else refused).append((offer, vote))
    assert len(granted) == 2
    assert {vote.code for _, vote in refused if isinstance(vote, HoldRefused)} == {RefusalCode.QUOTA}
    assert "at most 128 cores" in refused[0][1].detail
    outcome = await asyncio.to_thread(market.buy, "alice", fresh("request"), [unit(1, 100, in_hours(1))])
    assert outcome["status"] == "committed", outcome
    assert outcome["units"][0]["offer"]["resource"] == "big1@localhost"
    for offer, _ in granted:
        await mallory.let_go(offer)
    granted, refused = [], []
    for number in range(8):  # a core each
        vote = await mallory.hold(offer := await mallory.offer("big1", unit(1, 1, in_hours(1 + number))))
        (granted if isinstance(vote, HoldGranted) else refused).append((offer, vote))
    assert len(granted) == QUOTAS["holds_max"]
    assert {vote.code for _, vote in refused if isinstance(vote, HoldRefused)} == {RefusalCode.QUOTA}
    for offer, _ in granted:
        await mallory.let_go(offer)
