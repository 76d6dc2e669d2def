"""A seller that takes cores back without right, too soon, too cheaply, twice, or unknown to the bank (A1, A4, A5).

It is certified, sells honestly and is paid. What it may take back stands in the agreement: the bank refuses all else
with its code, and the buyer believes nothing that the bank has not said of that very reclamation. What it takes by
right it may hide from its buyer, whom the bank tells, and nobody else.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from certified import Buyer, Seller, fresh, sealed_by_hand, text_by_hand, unsealed
from standing import standing
from swarm_market import SHORT_TIMING, in_hours, unit, until

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Reclamation, Signed
from ramp.model.contents import (
    Confirmed,
    NotUnderstood,
    PaymentMade,
    Reclaimed,
    ReclamationAnnounced,
    ReclamationHeard,
    ReclamationNotice,
    ReclamationNoticed,
    ReclamationPosted,
    ReclamationQuery,
    ReclamationRefused,
    ReclamationTaken,
    Settled,
)
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import ReclaimTerms
from ramp.model.seal import Role, Seal
from ramp.model.sizes.amended import first_state, state_digest

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
RIGHT = ReclaimTerms(least=2, notice=2 * SECOND, compensation=3)
FAR = 30 * MINUTE
"""Until a reclamation takes effect that is refused, or never posted."""

SOON = RIGHT.notice + 3 * SECOND
"""Until one takes effect that is waited for."""


class Lender(Seller):
    """A seller that keeps what it has sold, with its proofs, and then does what a test wants."""

    honest_to_bank = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.documents = {}
        self.payments = {}

    async def _committed(self, message, commitment):
        agreement = commitment.agreement.body
        self.documents[agreement.agreement_id] = self.notary.sign(commitment.agreement, self.now)
        confirmed = Confirmed(agreement.agreement_id, agreement.offer.offer_id)
        await self.say(P.CONFIRM, agreement.user, confirmed, agreement.request_id)
        await super()._committed(message, commitment)

    async def on_message(self, message):
        await super().on_message(message)
        content = message.content
        if isinstance(content, PaymentMade):
            document = self.documents[content.agreement_id]
            self.payments[content.agreement_id] = message
            agreement = document.body
            named = agreement.agreement_id, agreement.offer.offer_id
            settled = Settled(*named, document, content, message.seal)
            await self.say(P.INFORM, agreement.user, settled, agreement.request_id)

    def drawn(self, agreement, within=FAR, **changes):
        """A reclamation of six of eight cores, right for what was bought and not begun unless changes make it wrong."""
        now = self.now
        return replace(
            Reclamation(
                agreement_id=agreement.agreement_id,
                number=1,
                previous=first_state(agreement).digest,
                offer_id=agreement.offer.offer_id,
                user=agreement.user,
                resource=self.name,
                bank=agreement.bank,
                cores=2,
                until=agreement.offer.end,
                effective_at=now + within,
                refund=6 * self.price * 100,
                compensation=6 * RIGHT.compensation * 100,
                issued_at=now,
                valid_until=now + within + 10 * MINUTE,
            ),
            **changes,
        )

    def signed(self, agreement, within=FAR, **changes):
        """The same, signed."""
        return self.notary.sign(Signed(self.drawn(agreement, within, **changes)), self.now)


ANSWERS = ReclamationNoticed, ReclamationPosted, ReclamationRefused, NotUnderstood


async def brought(party, signed, agreement, *changes):
    """What the bank answers to the notice of a reclamation."""
    conversation = fresh("reclamation")
    notice = ReclamationNotice(signed, agreement, changes)
    await party.say(P.REQUEST, "bank", notice, conversation, reply_with=conversation)
    return await party.answer(conversation, *ANSWERS)


async def taken(party, agreement, number):
    """What the bank answers to the word that the cores are there."""
    conversation = fresh("taken")
    word = ReclamationTaken(agreement.agreement_id, number)
    await party.say(P.REQUEST, "bank", word, conversation, reply_with=conversation)
    return await party.answer(conversation, *ANSWERS)


def code_of(message):
    content = message.content
    return content.code if isinstance(content, ReclamationRefused) else type(content).__name__


@pytest.fixture(scope="module")
def market(module_market, kind):
    users = {"alice": 1_000_000, "bob": 1_000}
    accounts = ["moriarty", "rival", "mallory"]
    market = module_market(kind=kind, users=users, timing=SHORT_TIMING, accounts=accounts, per_process=4, armed=True)
    market.up()
    return market


@pytest.fixture
async def moriarty(market, enter):
    """Listed, and cheaper than all others."""
    await asyncio.to_thread(market.wait_ready)
    seller = await enter(Lender, "moriarty")
    await seller.register()
    yield seller
    await seller.deregister()


async def sold(market, moriarty, hours, right=RIGHT):
    """Eight cores that alice has bought of moriarty; the agreement with both signatures."""
    request_id = fresh("request")
    wanted = [replace(unit(1, 8, in_hours(hours)), reclaim=right)]
    outcome = await asyncio.to_thread(market.buy, "alice", request_id, wanted)
    assert outcome["status"] == "committed", outcome
    (bought,) = outcome["units"]
    assert bought["offer"]["resource"] == moriarty.name
    return moriarty.documents[bought["agreement_id"]]


def stands(market, agreement_id):
    """What alice believes of a slot: cores that are to come and that have been taken back, as cores that are left."""
    (listed,) = [each for each in market.agreements("alice") if each["agreement"]["agreement_id"] == agreement_id]
    to_come = listed["to_come"]
    return to_come and to_come["cores"], [each["cores"] for each in listed["reclamations"]]


async def told(market, agreement, what):
    """Wait until alice believes something of a slot, which the seller has not told her."""
    believed = f"alice is told of {agreement.agreement_id} by the bank: {what}"
    await asyncio.to_thread(until, lambda: stands(market, agreement.agreement_id) == what, believed)


async def untouched(market, before, *agreements):
    """That nothing is otherwise than before, and alice awaits nothing."""
    assert not before.changes(await asyncio.to_thread(standing, market))
    for agreement in agreements:
        assert await asyncio.to_thread(stands, market, agreement.agreement_id) == (None, [])


async def test_what_the_agreement_does_not_allow_the_bank_does_not_note(market, moriarty, enter):
    document, unlent = await sold(market, moriarty, 2), await sold(market, moriarty, 2, None)
    rival, mallory = await enter(Lender, "rival"), await enter(Buyer, "mallory")
    agreement = document.body
    before = await asyncio.to_thread(standing, market)

    async def refused(within=FAR, **changes):
        return code_of(await brought(moriarty, moriarty.signed(agreement, within, **changes), document))

    assert code_of(await brought(moriarty, moriarty.signed(unlent.body), unlent)) == "no_right"
    less = {"cores": 1, "refund": 7 * moriarty.price * 100, "compensation": 7 * RIGHT.compensation * 100}
    assert await refused(**less) == "below_minimum"
    assert await refused(cores=8, refund=1, compensation=0) == "not_smaller"
    assert await refused(until=agreement.offer.end - HOUR // 2) == "not_smaller"

    now = moriarty.now
    assert await refused(effective_at=now + SECOND, valid_until=now + HOUR) == "short_notice"
    dated_back = {"issued_at": now - HOUR, "valid_until": now + HOUR}
    assert await refused(effective_at=now + SECOND, **dated_back) == "short_notice"
    assert await refused(effective_at=now - MINUTE, **dated_back) == "short_notice"

    right = moriarty.drawn(agreement)
    assert await refused(refund=right.refund - 1) == "bad_price"
    assert await refused(refund=0) in ("bad_price", "NotUnderstood")
    assert await refused(compensation=right.compensation - 1) == "bad_compensation"
    assert await refused(compensation=0) == "bad_compensation"

    assert await refused(bank=rival.name) == "other_parties"
    assert await refused(user="bob@localhost") == "other_parties"
    assert await refused(offer_id=unlent.body.offer.offer_id) == "other_parties"
    assert await refused(previous=first_state(unlent.body).digest) == "other_state"
    assert await refused(agreement_id=unlent.body.agreement_id) == "NotUnderstood"  # beside another's agreement

    its = rival.notary.sign(Signed(rival.drawn(agreement)), rival.now)
    assert code_of(await brought(rival, its, document)) == "other_parties"
    assert code_of(await brought(rival, moriarty.signed(agreement), document)) == "NotUnderstood"
    edited = moriarty.signed(agreement)
    edited = replace(edited, document=edited.document.replace('refund="', 'refund="0'))
    assert code_of(await brought(moriarty, edited, document)) == "NotUnderstood"

    colluding = replace(agreement, agreement_id=fresh("agreement"), user=mallory.name)
    for other, said in ((colluding, "unknown_transfer"), (replace(colluding, bank=rival.name), "NotUnderstood")):
        both = moriarty.notary.sign(mallory.notary.sign(Signed(other), mallory.now), moriarty.now)
        assert code_of(await brought(moriarty, moriarty.signed(other), both)) == said
    unsigned = mallory.notary.sign(Signed(colluding), mallory.now)  # by its seller
    assert code_of(await brought(moriarty, moriarty.signed(colluding), unsigned)) == "NotUnderstood"
    await untouched(market, before, agreement, unlent.body)


async def test_what_was_not_noticed_or_is_not_due_the_bank_does_not_post(market, moriarty, enter):
    document, rival = await sold(market, moriarty, 4), await enter(Lender, "rival")
    agreement = document.body
    before = await asyncio.to_thread(standing, market)
    assert code_of(await taken(moriarty, agreement, 1)) == "not_noticed"
    assert code_of(await taken(moriarty, replace(agreement, agreement_id="of-nobody"), 1)) == "unknown_transfer"
    await untouched(market, before, agreement)

    signed = moriarty.signed(agreement)
    assert code_of(await brought(moriarty, signed, document)) == "ReclamationNoticed"
    await told(market, agreement, (2, []))
    noted = await asyncio.to_thread(standing, market)
    posted, reserved = before.balances[moriarty.name]
    set_aside = before.balances | {moriarty.name: (posted, reserved + 1_800)}
    assert before.changes(noted) == {
        "entries": (before.entries, before.entries + 1),
        "balances": (before.balances, set_aside),
    }
    assert code_of(await taken(moriarty, agreement, 1)) == "too_early"
    assert code_of(await taken(rival, agreement, 1)) == "unknown_transfer"
    assert code_of(await taken(moriarty, agreement, 2)) == "not_noticed"
    other = moriarty.signed(agreement, FAR + MINUTE)
    assert code_of(await brought(moriarty, other, document)) == "duplicate_differs"
    assert code_of(await brought(moriarty, signed, document)) == "ReclamationNoticed"  # its own word once more
    assert not noted.changes(await asyncio.to_thread(standing, market))


def passed_on(moriarty, agreement, sender, said):
    """A word as if `sender` had said it to moriarty, who has sealed it."""
    message = Message(P.AGREE, sender, moriarty.name, agreement.request_id, said)
    text = text_by_hand(message, moriarty.keys, moriarty.name).text()
    return Seal(sender, Role.BANK, moriarty.name, agreement.request_id, moriarty.now, text)


async def test_the_buyer_believes_no_word_of_the_bank_but_its_own(market, moriarty):
    document = await sold(market, moriarty, 6)
    agreement = document.body
    bank, about = agreement.bank, agreement.request_id
    before = await asyncio.to_thread(standing, market)
    signed = moriarty.signed(agreement)
    body = signed.body
    noticed = ReclamationNoticed(body.agreement_id, body.number, moriarty.now, signed)
    posted = ReclamationPosted(body.agreement_id, body.number, "rebate", body.refund, body.compensation)
    payment = moriarty.payments[agreement.agreement_id]

    lies = [ReclamationAnnounced(noticed, passed_on(moriarty, agreement, bank, noticed))]
    lies += [ReclamationAnnounced(noticed, passed_on(moriarty, agreement, moriarty.name, noticed))]
    lies += [ReclamationAnnounced(noticed, payment.seal)]  # the bank's own, on another word
    lies += [Reclaimed(signed, posted, passed_on(moriarty, agreement, bank, posted))]
    lies += [Reclaimed(signed, posted, passed_on(moriarty, agreement, moriarty.name, posted))]
    lies += [Reclaimed(signed, posted, payment.seal)]
    for lie in lies:
        await moriarty.say(P.INFORM, "alice", lie, about, reply_with=fresh("lie"))
    for word in (noticed, posted):  # in the bank's name, and in its own
        for sender in ("bank", ""):
            message = moriarty.message(P.INFORM, "alice", word, about, sender=sender)
            await moriarty.put(unsealed(message), "alice")
            await moriarty.put(sealed_by_hand(message, moriarty.keys, moriarty.name), "alice")
    await moriarty.say(P.REFUSE, "alice", ReclamationRefused(body.agreement_id, 1, "gave_way"), about)
    await moriarty.is_read_by("alice")
    assert not [each for each in moriarty.heard if isinstance(each.content, ReclamationHeard)]
    await untouched(market, before, agreement)


async def one_noticed(moriarty, document):
    """A reclamation that the bank has on record: the document, and what the bank said.

    One that a busy computer brings too late is drawn up anew, under the next number.
    """
    for number in range(1, 100):
        signed = moriarty.signed(document.body, SOON, number=number)
        noticed = await brought(moriarty, signed, document)
        if code_of(noticed) == "short_notice":
            continue
        assert isinstance(noticed.content, ReclamationNoticed), noticed.content
        return signed, noticed
    raise AssertionError("always too late")


async def once_due(moriarty, document, number):
    """What the bank says when the cores are there, as soon as it is their time."""
    while code_of(posted := await taken(moriarty, document.body, number)) == "too_early":
        await asyncio.sleep(0.1)
    return posted


async def one_posted(moriarty, document):
    """A reclamation that the bank has posted: the document, its notice and its posting as the bank said them."""
    signed, noticed = await one_noticed(moriarty, document)
    return signed, noticed, await once_due(moriarty, document, signed.body.number)


async def test_what_is_posted_is_paid_once_and_proves_nothing_else(market, moriarty):
    document, other = await sold(market, moriarty, 8), await sold(market, moriarty, 10)
    agreement = document.body
    before = (await asyncio.to_thread(standing, market)).balances
    signed, noticed, posted = await one_posted(moriarty, document)
    body = signed.body
    assert isinstance(posted.content, ReclamationPosted), posted.content
    # six cores for an hour at the price of five and three on top, in minor units
    assert (posted.content.refund, posted.content.compensation) == (3_000, 1_800)
    await told(market, agreement, (None, [2]))
    after = await asyncio.to_thread(standing, market)
    for name, gets in (("alice@localhost", 4_800), (moriarty.name, -4_800)):
        assert after.balances[name] == (before[name][0] + gets, before[name][1])

    async def replayed(next_one, *changes):
        return code_of(await brought(moriarty, next_one, document, *changes))

    assert await replayed(signed) == "ReclamationPosted"  # what was said of it, once more
    assert code_of(await taken(moriarty, agreement, body.number)) == "ReclamationPosted"
    number = body.number + 1
    assert await replayed(moriarty.signed(agreement, number=number)) == "other_state"
    again = moriarty.signed(agreement, number=number, previous=state_digest(body))
    assert await replayed(again, signed) == "not_smaller"
    assert await replayed(again, signed, signed) == "NotUnderstood"
    assert await replayed(again) == "other_state"
    assert code_of(await brought(moriarty, signed, other)) == "NotUnderstood"
    moved = replace(body, agreement_id=other.body.agreement_id, offer_id=other.body.offer.offer_id)
    moved = moriarty.notary.sign(Signed(moved), moriarty.now)
    assert code_of(await brought(moriarty, moved, other)) == "other_state"

    new = moriarty.signed(other.body)
    for word in (
        ReclamationAnnounced(noticed.content, noticed.seal),
        Reclaimed(signed, posted.content, posted.seal),
        Reclaimed(again, posted.content, posted.seal),
        Reclaimed(new, posted.content, posted.seal),
    ):
        for buyer in ("alice", "bob"):
            await moriarty.say(P.INFORM, buyer, word, agreement.request_id, reply_with=fresh("replay"))
    await moriarty.is_read_by("alice")
    await moriarty.is_read_by("bob")
    assert not after.changes(await asyncio.to_thread(standing, market))
    assert await asyncio.to_thread(stands, market, agreement.agreement_id) == (None, [2])
    assert await asyncio.to_thread(stands, market, other.body.agreement_id) == (None, [])


async def test_what_a_seller_hides_its_buyer_learns_from_the_bank(market, moriarty, enter):
    """The bank fails before it has told the buyer that cores go; the seller, who knows, never says a word of it."""
    document, mallory = await sold(market, moriarty, 12), await enter(Buyer, "mallory")
    await sold(market, moriarty, 14)  # it must have the compensation
    agreement = document.body
    before = (await asyncio.to_thread(standing, market)).balances
    market.let_fail("bank")
    market.arm("bank", "agree ReclamationNoticed", "after")
    signed, _ = await one_noticed(moriarty, document)
    await asyncio.to_thread(until, market.victim, "the bank has failed")
    await asyncio.to_thread(market.wait_ready)
    assert await asyncio.to_thread(stands, market, agreement.agreement_id) == (None, [])
    posted = await once_due(moriarty, document, signed.body.number)
    assert isinstance(posted.content, ReclamationPosted), posted.content
    await told(market, agreement, (None, [2]))
    kept = market.state.agreement("alice", f"{agreement.agreement_id}.reclamation-{signed.body.number}")
    assert kept.read_text() == signed.document
    after = await asyncio.to_thread(standing, market)
    for name, gets in (("alice@localhost", 4_800), (moriarty.name, -4_800)):
        assert after.balances[name] == (before[name][0] + gets, before[name][1])

    conversation = fresh("query")  # anybody else asks in vain
    query = ReclamationQuery(agreement.agreement_id, 1, first_state(agreement).digest)
    await mallory.say(P.REQUEST, "bank", query, conversation, reply_with=conversation)
    assert code_of(await mallory.answer(conversation, *ANSWERS)) == "unknown_transfer"
