"""Certified resources that take the money and do not deliver (A5), or win and fall silent (A6).

Whatever they do, the buyer's money comes back on their own word or on the bank's, and where nothing was paid the buyer
goes on with the next best offer in the same purchase.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from decimal import Decimal

import pytest
from certified import Seller, fresh
from standing import restarts, standing
from swarm_books import Books
from swarm_market import SHORT_TIMING, in_hours, unit, until

from ramp.ledger.account import AccountKind
from ramp.ledger.orders.order import OrderState
from ramp.model.acl import Performative
from ramp.model.contents import ChangeRefused, Failed, PaymentRefused
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
TIMING = {**SHORT_TIMING, "hold_time_s": 60, "vote_limit_s": 3, "confirm_limit_s": 6, "cancellation_limit_s": 3}
COST = 8 * Seller.price * 100
"""Of eight cores for an hour at the rogue's price, in minor units."""


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(kind=kind, users={"alice": 1_000_000}, timing=TIMING, accounts=["moriarty"], per_process=4)
    market.up()
    return market


@pytest.fixture
async def moriarty(market, rogues):
    """A certified resource with an account, listed, and cheaper than all others."""
    await asyncio.to_thread(market.wait_ready)
    started = restarts(market)
    seller = await Seller.enter(market, rogues, "moriarty", Role.RESOURCE)
    seller.open_account(AccountKind.RESOURCE)
    await seller.register()
    yield seller
    await seller.deregister()
    seller.leave()
    assert "moriarty" not in await asyncio.to_thread(market.listed)
    assert restarts(market) == started
    with LedgerStore.open(market.state.ledger) as ledger:
        assert ledger.audit() == []
        assert ledger.pending() == ()


def balances(market):
    books = Books(market).balances()
    return books["alice"], books["moriarty"]


def command(market, *arguments):
    """What the command line tells alice."""
    run = subprocess.run(
        [sys.executable, "-m", "ramp.cli.main", *arguments, "--json", "--state-dir", str(market.state.path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert run.stdout, run.stderr
    return json.loads(run.stdout)


def agreement_state(market, agreement_id):
    return next(
        (each["state"], each["doubt"])
        for each in market.agreements("alice")
        if each["agreement"]["agreement_id"] == agreement_id
    )


async def begun(market, hours, *units):
    """A purchase of alice's that goes on while the test does; a task for its outcome."""
    wanted = list(units) or [unit(1, 8, in_hours(hours))]
    return asyncio.create_task(asyncio.to_thread(market.buy, "alice", fresh("request"), wanted))


async def test_it_takes_the_money_and_tells_the_buyer_that_it_failed(market, moriarty):
    before = balances(market)
    moriarty.honest_to_bank = True
    buying = await begun(market, 1)
    (paid,) = await moriarty.paid()
    agreement = moriarty.commitments[paid.content.agreement_id]
    assert balances(market) == (before[0] - COST, before[1] + COST)
    failed = Failed(agreement.agreement_id, agreement.offer.offer_id, RefusalCode.SLOT_TAKEN, "broken")
    await moriarty.say(P.FAILURE, "alice", failed, agreement.request_id)
    outcome = await buying
    assert outcome["status"] == "failed", outcome
    assert "was paid for unit 1 and reports a failure; a refund is requested" in outcome["reason"]
    await asyncio.to_thread(until, lambda: balances(market) == before, "the money is back")
    await asyncio.to_thread(
        until, lambda: agreement_state(market, agreement.agreement_id) == ("lost", ""), "alice knows it"
    )
    with LedgerStore.open(market.state.ledger) as ledger:
        kept = "".join(each.text for each in ledger.evidence(agreement.agreement_id))
    assert "from: moriarty@localhost" in kept, "the seller's own sealed word is kept"
    shown = await asyncio.to_thread(command, market, "balance")
    assert (Decimal(shown["balance"]), Decimal(shown["reserved"])) == (Decimal(before[0]) / 100, 0)


async def test_it_takes_the_money_and_tells_the_bank_that_it_failed(market, moriarty):
    before = balances(market)
    moriarty.honest_to_bank = True
    buying = await begun(market, 3)
    (paid,) = await moriarty.paid()
    agreement = moriarty.commitments[paid.content.agreement_id]
    failed = Failed(agreement.agreement_id, agreement.offer.offer_id, RefusalCode.SLOT_TAKEN, "broken")
    await moriarty.say(P.FAILURE, "bank", failed, agreement.request_id)
    outcome = await buying
    assert outcome["status"] == "failed", outcome
    assert "was paid for unit 1 and refunded the money" in outcome["reason"]
    assert balances(market) == before
    await asyncio.to_thread(
        until, lambda: agreement_state(market, agreement.agreement_id) == ("lost", ""), "alice knows it"
    )


@pytest.mark.parametrize("refusing", [False, True], ids=["silent", "refusing"])
async def test_it_takes_the_money_and_gives_no_proof_and_does_not_let_the_buyer_cancel(market, moriarty, refusing):
    before = balances(market)
    moriarty.honest_to_bank = True
    if refusing:
        moriarty.on_cancellation = ChangeRefused("", 0, "started", "the slot has already begun")
    outcome = await (await begun(market, 5))
    assert outcome["status"] == "committed", outcome  # on the bank's own word, when it is asked to void
    (bought,) = outcome["units"]
    assert bought["transfer_id"] == f"payment:{bought['agreement_id']}"
    assert balances(market) == (before[0] - COST, before[1] + COST)
    cancelled = await asyncio.to_thread(
        market.ask, "alice", {"verb": "cancel", "agreement_id": bought["agreement_id"], "reason": "no proof"}
    )
    assert cancelled["outcome"]["done"], cancelled
    assert cancelled["outcome"]["refund"] == COST
    assert balances(market) == before
    assert agreement_state(market, bought["agreement_id"]) == ("cancelled", "")


@pytest.mark.parametrize("units", [1, 2])
async def test_it_bids_lowest_votes_yes_and_is_silent(market, moriarty, units):
    """Alice is told by the bank that her order is void, and buys from the next best in the same purchase."""
    before = await asyncio.to_thread(standing, market)
    begin = in_hours(7 + 2 * units)
    outcome = await (await begun(market, 0, *(unit(number, 8 * number, begin) for number in range(1, units + 1))))
    assert outcome["status"] == "committed", outcome
    assert {each["offer"]["resource"] for each in outcome["units"]} == {"small1@localhost"}
    (first, *others) = moriarty.commitments.values()
    assert len(others) == units - 1
    with LedgerStore.open(market.state.ledger) as ledger:
        void = ledger.order(first.order_id)
        assert (void.state, void.code) == (OrderState.VOIDED, "withdrawn")
        assert len(ledger.evidence(first.order_id)) == 2, "order and void, both sealed by alice"
    after = await asyncio.to_thread(standing, market)
    cost = sum(each["offer"]["cpu_hour_cost"] * 8 * each["unit"] * 100 for each in outcome["units"])
    alice = "alice@localhost"
    assert after.balances[alice] == (before.balances[alice][0] - cost, 0)
    assert after.balances[moriarty.name] == before.balances[moriarty.name]
    assert {agreement_state(market, each) for each in moriarty.commitments} == {("void", "")}


async def test_what_the_buyer_sees_while_a_silent_resource_keeps_it_waiting(market, moriarty):
    """The balance never lies: what is set aside is shown as such, and as available again when the order is void."""
    before = await asyncio.to_thread(command, market, "balance")
    buying = await begun(market, 15)
    await asyncio.to_thread(until, lambda: moriarty.commitments, "the commitment is there")
    during = await asyncio.to_thread(market.account, "alice")
    requests = (await asyncio.to_thread(market.ask, "alice", {"verb": "requests"}))["requests"]
    (agreement,) = moriarty.commitments.values()
    (request,) = [each for each in requests if each["request_id"] == agreement.request_id]
    assert (during["balance"], during["reserved"]) == (Decimal(before["balance"]) * 100, COST)
    assert request["stage"] == "confirming"
    outcome = await buying
    assert outcome["status"] == "committed", outcome
    after = await asyncio.to_thread(command, market, "balance")
    assert Decimal(after["reserved"]) == 0
    assert after["available"] == after["balance"] == f"{Decimal(before['balance']) - 8 * 20:.2f}"
    status = await asyncio.to_thread(command, market, "status")
    (request,) = [each for each in status if each["request_id"] == agreement.request_id]
    assert (request["status"], request["in_doubt"]) == ("committed", False)


async def test_it_comes_back_when_the_order_is_void(market, moriarty):
    """Its agreement, countersigned too late, is refused, and so is a claim that it was paid."""
    outcome = await (await begun(market, 17))
    assert outcome["status"] == "committed", outcome
    before = await asyncio.to_thread(standing, market)
    message = next(each for each in moriarty.heard if type(each.content).__name__ == "Commitment")
    await moriarty.countersign(message.content.agreement)
    refused = await moriarty.answer(message.conversation_id, PaymentRefused)
    assert refused.content.code == "withdrawn"
    failed = Failed(message.content.agreement.body.agreement_id, "offer", RefusalCode.SLOT_TAKEN)
    await moriarty.say(P.FAILURE, "bank", failed, message.conversation_id)
    await moriarty.is_read_by("bank")
    assert not before.changes(await asyncio.to_thread(standing, market))
