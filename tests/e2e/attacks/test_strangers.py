"""Third parties: junk about others' agreements and accounts, and floods of registrations (A6, A7)."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest
from certified import Buyer, Party, fresh, sealed_by_hand, unsealed
from standing import restarts, standing, stopped_purchase
from swarm_market import SHORT_TIMING, in_hours, unit, until

from ramp.ledger.account import AccountKind
from ramp.model.acl import Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import (
    AccountQuery,
    AccountQueryRefused,
    AccountStatement,
    ChangePosted,
    Confirmed,
    Deregistration,
    FundsReserved,
    PaymentMade,
    PaymentQuery,
    PaymentRefused,
    Registration,
    Settled,
)
from ramp.model.instant import MINUTE
from ramp.model.seal import Role
from ramp.model.services import RESOURCE_SERVICE
from ramp.protocol.directory.party import PAGE_NAMES_MAX, KnownAgent
from ramp.rfql import codec
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
        accounts=["mallory", "rival", "stranger", "rich"],
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


async def test_an_id_that_others_have_spoilt_beforehand_can_be_bought_under(market, enter):
    """A6: who learns an agreement id in advance cannot have it refused for good."""
    mallory, rival = await enter("mallory", Role.USER), await enter("rival", Role.RESOURCE)
    rich = await enter("rich", Role.USER)
    rich.open_account(AccountKind.USER, 1_000_000)
    agreement = await rich.held("small1", unit(1, 8, in_hours(3)))
    for member, performative, content in junk(rival, mallory, agreement, agreement.agreement_id, agreement.order_id):
        await member.tell(performative, "bank", content, fresh("junk"))
    for member in (mallory, rival):
        await member.is_read_by("bank")
    vote = await rich.order(agreement)
    assert isinstance(vote.content, FundsReserved), vote.content
    assert isinstance((await rich.commit(agreement, vote.content, vote.seal)).content, Confirmed)
    settled = await rich.answer(agreement.request_id, Settled)
    assert settled.content.agreement_id == agreement.agreement_id


async def test_a_captured_account_query_shows_nothing_to_who_sends_it_first(market, enter):
    """A7: the query is bound to its sender, and the thief's attempt does not use it up."""
    rich, mallory, stranger = await enter("rich", Role.USER), await enter("mallory", Role.USER), await enter("stranger")
    rich.open_account(AccountKind.USER)
    query = rich.message(P.QUERY_REF, "bank", AccountQuery(fresh("nonce"), rich.name), fresh("query"))
    captured = codec.encode(rich.notary.seal(query, rich.now))
    for thief in (mallory, stranger):
        await thief.put(captured, "bank")
        await thief.put(unsealed(query), "bank")
        await thief.put(sealed_by_hand(query, thief.keys, mallory.name), "bank")
        await thief.is_read_by("bank")
    # its own query for another's account is answered, with a refusal
    await mallory.say(P.QUERY_REF, "bank", AccountQuery(fresh("nonce"), rich.name), own := fresh("query"))
    assert isinstance((await mallory.answer(own)).content, AccountQueryRefused)
    await rich.put(captured, "bank")
    statement = (await rich.answer(query.conversation_id)).content
    assert isinstance(statement, AccountStatement), statement
    assert statement.account == rich.name
    for thief in (mallory, stranger):
        assert not [each for each in thief.heard if isinstance(each.content, AccountStatement)]


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


async def test_a_captured_registration_or_withdrawal_counts_once(market, enter):
    """A1: replayed even on the resource's own line, as a server could, it strikes nobody out and lists nobody."""
    rival = await enter("rival", Role.RESOURCE)

    def captured(performative, content):
        return sealed_by_hand(rival.message(performative, "directory", content, rival.name), rival.keys, rival.name)

    first = captured(P.SUBSCRIBE, Registration(RESOURCE_SERVICE, 10 * MINUTE, number := rival.now))
    leaving = captured(P.CANCEL, Deregistration(RESOURCE_SERVICE, number + 1))
    second = captured(P.SUBSCRIBE, Registration(RESOURCE_SERVICE, 10 * MINUTE, number + 2))
    leaving_again = captured(P.CANCEL, Deregistration(RESOURCE_SERVICE, number + 3))
    others = ["big1", "big2", "small1", "small2"]
    for said, listed in (
        (first, [*others, "rival"]),
        (leaving, others),
        (first, others),
        (second, [*others, "rival"]),
        (leaving, [*others, "rival"]),
        (leaving_again, others),
        (second, others),
    ):
        await rival.put(said, "directory")
        await rival.is_read_by("directory")
        assert await asyncio.to_thread(market.listed) == sorted(listed)


def test_a_directory_of_10_500_sellers_answers_in_pages(market):
    """What so many certified sellers would make: a directory that starts again with them all, for one lease."""
    market.wait_ready()
    directory = market.agent("directory")["pid"]
    os.kill(directory, signal.SIGSTOP)
    names = {f"seller{number:05}@localhost" for number in range(NAMES)}
    market.state.keep_registered("directory", [KnownAgent(RESOURCE_SERVICE, name, 1) for name in sorted(names)])
    os.kill(directory, signal.SIGKILL)
    until(lambda: market.agent("directory")["pid"] != directory, "the directory is started again")
    expected = sorted(name.partition("@")[0] for name in names)
    until(lambda: set(expected) <= set(market.listed()), "all of them are told, page by page")
    assert len(expected) > 20 * PAGE_NAMES_MAX
    until(lambda: market.listed() == ["big1", "big2", "small1", "small2"], "their lease is over")
    market.wait_ready()
    outcome = market.buy("alice", fresh("request"), [unit(1, 8, in_hours(7))])
    assert outcome["status"] == "committed", outcome
