"""A bought slot that shrinks while it stands: as a user does it, and as rogues would like to (A1, A4, A5)."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from decimal import Decimal

import pytest
from certified import Buyer, Party, fresh, unsealed
from swarm_books import Books
from swarm_market import SHORT_TIMING, in_hours, unit

from ramp.cli.main import main
from ramp.model.acl import Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents import (
    ChangeAgreed,
    ChangeDone,
    ChangeRefused,
    ChangeWithdrawal,
    Confirmed,
    FundsReserved,
    NotUnderstood,
    Settled,
)
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, to_datetime
from ramp.model.sizes.amended import after, first_state, refund_owed, state_digest
from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
PRICE = 20
"""Of small1, in credits per core hour: it is the cheapest."""

COST = 8 * PRICE * 100
"""Of eight cores for an hour, in minor units."""

NOTICE_S = 3

FAR: Duration = 30 * MINUTE
"""Until an amendment takes effect that is refused, or comes to nothing: no busy computer brings it too late."""

SOON: Duration = (NOTICE_S + 4) * SECOND
"""Until one takes effect that is waited for."""


@pytest.fixture(scope="module")
def market(module_market):
    timing = {**SHORT_TIMING, "amendment_notice_s": NOTICE_S}
    accounts = ["rich", "mallory", "moriarty"]
    market = module_market(kind="embedded", users={"alice": 1_000}, timing=timing, accounts=accounts, per_process=4)
    market.up()
    market.wait_ready()
    return market


def run_of(market, *arguments):
    """Exit code and output of a verb."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*arguments, "--state-dir", str(market.state.path)])
    return code, out.getvalue(), err.getvalue()


def ramp(market, *arguments, code=0):
    """What the command line says; with `--json` as it is meant."""
    found, out, err = run_of(market, *arguments)
    assert found == code, (found, out, err)
    return json.loads(out) if "--json" in arguments else out + err


def balance(market):
    return Decimal(ramp(market, "balance", "--json")["balance"])


def resized(market, *arguments):
    """What `ramp resize` says in the end; a proposal that a busy computer brings after its notice is made again."""
    while True:
        code, out, err = run_of(market, "resize", *arguments, "--json")
        told = json.loads(out)
        if told["code"] not in ("too_late", "expired"):
            assert code == 0, (told, err)
            return told


def test_a_user_makes_a_slot_smaller_and_gives_the_rest_back(market):
    outcome = market.buy("alice", "request-shrinks", [unit(1, 8, in_hours(2))])
    assert outcome["status"] == "committed", outcome
    (bought,) = outcome["units"]
    reservation, resource = bought["reservation_id"], bought["offer"]["resource"].partition("@")[0]
    assert resource == "small1"
    quoted = ramp(market, "resize", reservation, "--cores", "6", "--quote", "--json")
    assert (quoted["changed"], quoted["quoted"], quoted["amendment"]) == (False, True, None)
    assert Decimal(quoted["refund"]) == Decimal(COST) / 400
    assert balance(market) == 1_000 - Decimal(COST) / 100, "a quotation changes nothing"

    done = resized(market, reservation, "--cores", "6")
    assert (done["changed"], done["cores"], done["code"]) == (True, 6, "")
    assert done["refund"] == quoted["refund"]
    until = to_datetime(bought["offer"]["end"] - HOUR // 2).isoformat()
    again = resized(market, reservation, "--cores", "4", "--until", until)
    assert (again["changed"], again["cores"]) == (True, 4)
    assert again["amendment"] > done["amendment"]
    back = Decimal(done["refund"]) + Decimal(again["refund"])
    assert back == Decimal(COST) * 3 / 400, "half the cores, and of these half the time"

    numbers = [done["amendment"], again["amendment"]]
    shown = ramp(market, "show", reservation, "--json")
    assert (shown["cores"], shown["end"]) == (4, again["end"])
    assert [each["number"] for each in shown["amendments"]] == numbers
    (listed,) = ramp(market, "reservations", "--json")
    assert listed["cores"] == 4
    assert "--ntasks=4 " in ramp(market, "show", reservation, "--as", "sbatch")
    (slot,) = [each for each in Books(market).reservations()["small1"] if each.reservation_id == reservation]
    assert (slot.firm, slot.slot.cores) == (True, 4)

    back = Decimal(done["refund"]) + Decimal(again["refund"])
    assert balance(market) == 1_000 - Decimal(COST) / 100 + back
    agreement_id = done["agreement_id"]
    files = [
        str(market.state.agreement("alice", name))
        for name in (agreement_id, *(f"{agreement_id}.amendment-{number}" for number in numbers))
    ]
    verified = ramp(market, "verify", *files, "--json")
    assert verified["holds"]
    (chain,) = verified["chains"]
    assert (chain["amendments"], chain["cores"], chain["end"]) == (numbers, 4, again["end"])
    assert Decimal(chain["returned"]) == back
    broken = ramp(market, "verify", files[0], files[2], code=1)
    assert f"amendment {numbers[1]} does not follow: other_state" in broken
    theirs = market.state.agreement("small1", f"{agreement_id}.amendment-{numbers[1]}")
    assert "holds" in ramp(market, "verify", str(theirs))

    sooner = to_datetime(bought["offer"]["end"] - 3 * HOUR // 4).isoformat()
    mixed = ramp(market, "resize", reservation, "--cores", "9", "--until", sooner, "--json", code=1)
    assert (mixed["changed"], mixed["code"]) == (False, "mixed_change")
    (cancelled,) = ramp(market, "cancel", reservation, "--json")
    assert Decimal(cancelled["refund"]) == Decimal(COST) / 100 - back
    assert balance(market) == 1_000
    assert reservation not in {each.reservation_id for each in Books(market).reservations()["small1"]}
    with LedgerStore.open(market.state.ledger) as ledger:
        assert ledger.audit() == []


async def bought(rich):
    """A slot of small1 that a rogue has bought honestly, paid and sold as its resource says."""
    agreement = await rich.held("small1", unit(1, 8, in_hours(3)))
    vote = await rich.order(agreement)
    assert isinstance(vote.content, FundsReserved)
    assert vote.seal is not None
    answer = await rich.commit(agreement, vote.content, vote.seal)
    assert isinstance(answer.content, Confirmed), answer
    await rich.answer(agreement.request_id, Settled)
    return agreement


def proposed(agreement, state, rich, within=FAR, **changes):
    """An amendment to six cores; its refund is right for what it says, unless it is among the changes."""
    now = rich.now
    amendment = ContractChange(
        agreement_id=agreement.agreement_id,
        number=state.number + 1,
        previous=state.digest,
        offer_id=agreement.offer.offer_id,
        user=agreement.user,
        resource=agreement.resource,
        bank=agreement.bank,
        cores=6,
        until=state.until,
        effective_at=now + within,
        amount=-1,
        issued_at=now,
        valid_until=now + within + 5 * MINUTE,
    )
    amendment = replace(amendment, **changes)
    if "refund" not in changes:
        owed = refund_owed(agreement, state, amendment.cores, amendment.until, amendment.effective_at)
        amendment = replace(amendment, amount=-max(owed, 1))
    return amendment


async def answered(party, to, signed, *kinds):
    """What is said to a signed document, whoever it is from."""
    conversation = await brought(party, to, signed)
    return (await party.answer(conversation, *kinds)).content


async def brought(party, to, signed, conversation=""):
    """Send a signed document, whoever it is from; returns the conversation in which it is refused."""
    conversation = conversation or fresh("amendment")
    await party.put(unsealed(party.message(P.REQUEST, to, signed, conversation, reply_with=conversation)), to)
    return conversation


def money(market, *names):
    with LedgerStore.open(market.state.ledger) as ledger:
        assert ledger.audit() == []
        return [ledger.balance(f"{name}@localhost").posted for name in names]


async def test_what_no_resource_agrees_to(market, enter):
    rich = await enter(Buyer, "rich", 1_000_000)
    mallory = await enter(Buyer, "mallory")
    agreement = await bought(rich)
    state = first_state(agreement)
    before = money(market, "rich", "small1")

    async def refused(**changes):
        signed = rich.notary.sign(Signed(proposed(agreement, state, rich, **changes)), rich.now)
        answer = await answered(rich, "small1", signed, ChangeRefused, ChangeAgreed, NotUnderstood)
        return answer.code if isinstance(answer, ChangeRefused) else type(answer).__name__

    soon, later = rich.now + 2 * MINUTE, rich.now + 2 * MINUTE + SECOND
    assert await refused(previous=state_digest(replace(agreement, cost=1))) == "other_state"
    assert await refused(cores=9) == "not_smaller"
    assert await refused(until=state.until + SECOND) == "not_smaller"
    assert await refused(cores=8) == "no_change"
    assert await refused(amount=-COST) == "bad_price"
    assert await refused(amount=1) == "NotUnderstood"
    assert await refused(effective_at=rich.now - SECOND) == "NotUnderstood"  # before it was issued
    early = rich.now - MINUTE
    assert await refused(issued_at=early, effective_at=early + 10 * SECOND) == "too_late"
    assert await refused(issued_at=rich.now - HOUR) == "too_old"
    assert await refused(issued_at=soon, effective_at=later, valid_until=later + MINUTE) == "short_notice"
    assert await refused(effective_at=state.until, valid_until=state.until + SECOND) == "NotUnderstood"
    assert await refused(valid_until=soon, effective_at=later) == "NotUnderstood"
    assert await refused(agreement_id="agreement-of-nobody") == "unknown_agreement"
    assert await refused(offer_id="offer-of-nobody") == "unknown_agreement"
    assert await refused(bank="moriarty@localhost") == "other_parties"
    assert await refused(number=1_000_000) == "NotUnderstood"
    others = mallory.notary.sign(Signed(proposed(agreement, state, rich, user=mallory.name)), rich.now)
    assert isinstance(await answered(mallory, "small1", others, ChangeRefused, NotUnderstood), NotUnderstood)
    forged = rich.notary.sign(Signed(proposed(agreement, state, rich)), rich.now)
    forged = replace(forged, document=forged.document.replace('cores="6"', 'cores="1"'))
    assert isinstance(await answered(rich, "small1", forged, ChangeRefused, NotUnderstood), NotUnderstood)
    assert money(market, "rich", "small1") == before
    firm = await asyncio.to_thread(Books(market).reservations)
    assert [each.slot.cores for each in firm["small1"] if each.key == agreement.offer.offer_id] == [8]


async def one_agreed(rich, agreement):
    """An amendment that small1 has agreed to, as signed by its buyer; another that comes meanwhile is refused.

    A number may be skipped, and what was proposed under it is void then. What a busy computer brings too late is
    proposed again, under the next number.
    """
    state = first_state(agreement)
    for number in range(3, 100, 2):
        signed = rich.notary.sign(Signed(proposed(agreement, state, rich, SOON, number=number)), rich.now)
        other = rich.notary.sign(Signed(replace(signed.body, number=number + 1)), rich.now)
        await brought(rich, "small1", signed, agreement.request_id)
        refusal = (await answered(rich, "small1", other, ChangeRefused)).code
        if refusal == "another_open":
            await rich.answer(agreement.request_id, ChangeAgreed)
            return signed
        assert refusal == "too_late"
    raise AssertionError("always too late")


async def test_what_is_posted_is_posted_once_and_brought_by_its_resource_only(market, enter):
    rich = await enter(Buyer, "rich", 1_000_000)
    mallory = await enter(Buyer, "mallory")
    moriarty = await enter(Party, "moriarty")
    agreement = await bought(rich)
    first = first_state(agreement)
    (before,) = money(market, "rich")
    alone = rich.notary.sign(Signed(proposed(agreement, first, rich)), rich.now)
    for who in (rich, mallory, moriarty):  # signed by one only, and not by its resource
        assert isinstance(await answered(who, "bank", alone, NotUnderstood, ChangeRefused), NotUnderstood)
    wish = ChangeWithdrawal(agreement.agreement_id, 1)
    await mallory.say(P.REQUEST, "bank", wish, conversation := fresh("withdrawal"))
    assert (await mallory.answer(conversation, ChangeRefused)).content.code == "unknown_transfer"

    signed = await one_agreed(rich, agreement)
    amendment = signed.body
    proof = (await rich.answer(agreement.request_id, ChangeDone)).content
    assert (proof.posted.refund, proof.amendment.signers) == (amendment.refund, (rich.name, "small1@localhost"))
    assert money(market, "rich") == [before + amendment.refund]

    again = await answered(rich, "small1", signed, ChangeDone)
    assert again.posted == proof.posted
    for who in (rich, mallory, moriarty):  # with both signatures, from another
        assert isinstance(await answered(who, "bank", proof.amendment, NotUnderstood), NotUnderstood)
    wish = replace(wish, number=amendment.number)
    await rich.say(P.REQUEST, "bank", wish, conversation := fresh("withdrawal"))
    assert (await rich.answer(conversation)).content.refund == amendment.refund  # it stays posted
    old = rich.notary.sign(
        Signed(proposed(agreement, after(first_state(agreement), amendment), rich, number=2, cores=4)), rich.now
    )
    assert (await answered(rich, "small1", old, ChangeRefused)).code == "old_number"
    crossed = proposed(agreement, first, rich, number=amendment.number + 2, cores=5)
    crossed = rich.notary.sign(Signed(crossed), rich.now)
    assert (await answered(rich, "small1", crossed, ChangeRefused)).code == "other_state"
    assert money(market, "rich") == [before + amendment.refund]
    firm = await asyncio.to_thread(Books(market).reservations)
    assert [each.slot.cores for each in firm["small1"] if each.key == agreement.offer.offer_id] == [6]
