"""Third parties: junk about others' agreements and accounts, and floods of registrations (A6, A7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from certified import Buyer, Party, fresh, sealed_by_hand, unsealed
from standing import restarts, standing, stopped_purchase
from swarm_market import SHORT_TIMING, in_hours, unit

from ramp.model.acl import Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import (
    ChangePosted,
    FundsReserved,
    PaymentMade,
    PaymentQuery,
    PaymentRefused,
    Registration,
)
from ramp.model.instant import MINUTE
from ramp.model.seal import Role
from ramp.model.services import RESOURCE_SERVICE
from ramp.runtime.journal import SqliteJournal

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
PATIENT = dict.fromkeys(("hold_time_s", "confirm_limit_s", "vote_limit_s", "agreement_validity_s"), 90)
NAMES = 10_500
"""As many names as the attack had that silenced the directory."""


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(
        armed=True,
        kind=kind,
        users={"alice": 1_000_000},
        timing={**SHORT_TIMING, **PATIENT, "lease_s": 30},
        accounts=["mallory", "rival", "stranger"],
        quotas={"messages_per_sender_per_second": 5_000, "burst": 15_000},  # what is dropped unread proves nothing here
    )
    market.up()
    return market


@pytest.fixture
async def enter(market, rogues):
    """`await enter("rival", Role.RESOURCE)` lets a party in; nobody honest is restarted."""
    await asyncio.to_thread(market.wait_ready)
    inside = []
    started = restarts(market)

    async def let_in(name, role=None):
        inside.append(await (Buyer if role is Role.USER else Party).enter(market, rogues, name, role))
        return inside[-1]

    yield let_in
    for party in inside:
        party.leave()
    assert restarts(market) == started


def junk(rival, mallory, true, agreement_id, order_id):
    """Documents about an agreement id that are signed by others than its parties, or not at all; who brings which."""
    theirs = replace(true, agreement_id=agreement_id, order_id=order_id)
    as_mallory = replace(theirs, user=mallory.name)
    both = replace(as_mallory, resource=rival.name, offer=replace(true.offer, resource=rival.name))
    by_mallory = mallory.notary.sign(Signed(as_mallory), mallory.now)
    by_both = rival.notary.sign(mallory.notary.sign(Signed(both), mallory.now), rival.now)
    broken = replace(by_both, document=by_both.document.replace(mallory.name, true.user))
    back = ContractChange(
        agreement_id, 0, true.offer.offer_id, mallory.name, rival.name, true.bank, mallory.now, reason=""
    )
    back_by_mallory = mallory.notary.sign(Signed(back), mallory.now)
    back_by_both = rival.notary.sign(back_by_mallory, rival.now)
    return [
        (mallory, P.REQUEST, by_mallory),
        (rival, P.REQUEST, by_mallory),
        (mallory, P.REQUEST, by_both),
        (rival, P.REQUEST, by_both),
        (rival, P.REQUEST, broken),
        (mallory, P.REQUEST, back_by_mallory),
        (rival, P.REQUEST, back_by_both),
        (mallory, P.QUERY_REF, PaymentQuery(agreement_id)),
        (rival, P.QUERY_REF, PaymentQuery(agreement_id)),
    ]


def read_agreement(market, agreement_id):
    """An agreement as alice has it, as a value."""
    for record in SqliteJournal(market.state.journals / "alice.sqlite").records():
        for each in getattr(record, "agreements", ()):
            if each.agreement_id == agreement_id:
                return each
    raise AssertionError(f"alice has no {agreement_id}")


async def test_junk_about_an_agreement_leaves_no_trace(market, enter):
    """A6: for an id that is being settled and for one nobody knows: no row, no change, and it is paid after all."""
    mallory, rival = await enter("mallory", Role.USER), await enter("rival", Role.RESOURCE)
    stranger = await enter("stranger")
    async with stopped_purchase(market, "resource", "request Agreement", "request-junk", 1) as agreement:
        true = await asyncio.to_thread(read_agreement, market, agreement["agreement_id"])
        assert isinstance(true, Agreement)
        before = await asyncio.to_thread(standing, market)
        assert before.orders == (true.order_id,)
        for _ in range(20):
            for agreement_id, order_id in ((true.agreement_id, true.order_id), (fresh("unknown"), fresh("unknown"))):
                for member, performative, content in junk(rival, mallory, true, agreement_id, order_id):
                    for sender in (member, stranger):
                        await sender.tell(performative, "bank", content, fresh("junk"))
        for member in (mallory, rival, stranger):
            await member.is_read_by("bank")
        assert not before.changes(await asyncio.to_thread(standing, market))
        for member in (mallory, rival, stranger):
            told = [each.content for each in member.heard]
            assert not [each for each in told if isinstance(each, PaymentMade | ChangePosted | FundsReserved)]
            refused = [each for each in told if isinstance(each, PaymentRefused)]
            assert refused
            assert {each.code for each in refused} <= {"unknown_agreement"}


async def test_one_account_registers_itself_at_most(market, enter):
    """A6: 10 500 names that are not its own, by a stranger and by a certified resource; the directory goes on."""
    stranger, rival, mallory = (
        await enter("stranger"),
        await enter("rival", Role.RESOURCE),
        await enter("mallory", Role.USER),
    )
    before = await asyncio.to_thread(standing, market)
    for number in range(NAMES // 3):
        name = f"name{number:05}@localhost"
        registration = Registration(RESOURCE_SERVICE, 10 * MINUTE, number + 1)
        for member in (stranger, rival, mallory):
            message = member.message(P.SUBSCRIBE, "directory", registration, name, sender=name)
            encoded = unsealed(message)
            if member is not stranger:
                encoded = sealed_by_hand(message, member.keys, member.name)
            await member.put(encoded, "directory")
        if number % 100 == 0:
            for member in (stranger, rival, mallory):
                await member.rogue.written()
    as_user = mallory.message(P.SUBSCRIBE, "directory", registration)
    await mallory.put(sealed_by_hand(as_user, mallory.keys, mallory.name), "directory")
    for service in ("banking", "resource-trader "):
        await rival.say(P.SUBSCRIBE, "directory", Registration(service, MINUTE, rival.now))
    outcome = await asyncio.to_thread(market.buy, "alice", fresh("request"), [unit(1, 8, in_hours(5))])
    assert outcome["status"] == "committed", outcome
    for member in (stranger, rival, mallory):
        await member.is_read_by("directory")
    assert await asyncio.to_thread(market.listed) == before.listed == ["big1", "big2", "small1", "small2"]
