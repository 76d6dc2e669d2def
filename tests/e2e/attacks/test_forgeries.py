"""Words put into the mouths of bank, directory, resources and users (A1): dropped, however they are dressed up.

A purchase is stopped at a moment at which the forged word would matter most, by stopping the process of the one who
should speak. Then rogues say it in that one's place, knowing every identifier. Nothing may have changed; and when the
true one goes on, the purchase ends as if nothing had been.
"""

import asyncio

import pytest

from ramp.model import contents as c
from ramp.model.acl import CONTENT_OF, SEALED, Performative
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.instant import MINUTE
from ramp.model.seal import Role
from ramp.rfql.signing import seals
from ramp.runtime.keys.store import KeyStore
from tests.e2e.attacks.certified import address, fresh, sealed_by_hand, unsealed, with_seal
from tests.e2e.attacks.standing import standing, stopped_purchase

pytestmark = [pytest.mark.e2e, pytest.mark.full]

P = Performative
FAR = 4 * 10**15
"""A number above every one that a resource counts up to, as microseconds it is the year 2096."""


@pytest.fixture(scope="module")
def market(module_market, kind):
    accounts = ["mallory", "rival", "stranger"]
    market = module_market(armed=True, kind=kind, users={"alice": 1_000_000}, accounts=accounts)
    market.up()
    return market


@pytest.fixture
async def gang(enter):
    """A stranger without certificate, a certified user and a certified resource."""
    roles = {"stranger": None, "mallory": Role.USER, "rival": Role.RESOURCE}
    return {name: await enter(name, role) for name, role in roles.items()}


class Facts:
    """What is to be known of the stopped purchase."""

    def __init__(self, agreement):
        self.request = agreement["request_id"]
        self.agreement = agreement["agreement_id"]
        self.order = agreement["order_id"]
        self.offer = agreement["offer"]["offer_id"]
        self.cost = agreement["cost"]
        self.valid_until = agreement["valid_until"]
        self.line = c.OrderLine(self.agreement, "small1@localhost", self.cost, self.offer)
        self.transfer = c.PaymentMade(self.agreement, f"payment:{self.agreement}", self.cost)


def before_the_payment(facts):
    """The ledger has posted, and the bank has told nobody: small1 has a firm slot, and waits to be paid."""
    return [
        ("bank", "small1", P.AGREE, facts.transfer, facts.order),
        ("bank", "small1", P.REFUSE, c.PaymentRefused(facts.agreement, "expired"), facts.order),
        ("bank", "small1", P.INFORM, c.PaymentRefused(facts.agreement, "expired"), facts.order),
        ("bank", "small1", P.AGREE, c.ChangePosted(facts.agreement, 0, "refund", -facts.cost), facts.order),
        ("bank", "small1", P.REFUSE, c.ChangeRefused(facts.agreement, 0, "started"), facts.order),
        ("alice", "small1", P.CANCEL, c.HoldCancelled(facts.request, facts.offer), facts.request),
        ("small1", "alice", P.REFUSE, c.ChangeRefused(facts.agreement, 0, "not_active"), facts.request),
        ("bank", "alice", P.INFORM, c.OrderVoided(facts.order, "resource_failed", "", (facts.line,)), facts.request),
        ("bank", "alice", P.INFORM, c.ChangePosted(facts.agreement, 0, "refund", -facts.cost), facts.request),
    ]


def before_the_agreement(facts):
    """Small1 has acknowledged the agreement and not brought it to the bank, which has the money set aside."""
    rival_line = c.OrderLine(facts.agreement, "rival@localhost", facts.cost, facts.offer)
    withdrawal = c.OrderWithdrawal(facts.order, facts.valid_until, "I no longer want it")
    return [
        ("alice", "bank", P.REQUEST, withdrawal, facts.request),
        ("alice", "bank", P.REQUEST, c.PaymentOrder(facts.order, (rival_line,), facts.valid_until), facts.request),
        ("alice", "bank", P.REQUEST, c.PaymentOrder(fresh("order"), (rival_line,), facts.valid_until), facts.request),
        ("alice", "bank", P.QUERY_REF, c.AccountQuery(fresh("nonce"), "alice@localhost"), "query-1"),
        ("keeper", "bank", P.REQUEST, c.DepositOrder(fresh("deposit"), "mallory@localhost", 10**9), "deposit-1"),
        ("keeper", "bank", P.QUERY_REF, c.OverviewQuery(fresh("query")), "query-2"),
        ("bank", "alice", P.INFORM, c.OrderVoided(facts.order, "expired"), facts.request),
        ("bank", "alice", P.INFORM, c.OrderPosted(facts.order, (facts.transfer,)), facts.request),
        ("small1", "alice", P.CONFIRM, c.Confirmed(facts.agreement, facts.offer), facts.request),
        ("small1", "directory", P.CANCEL, c.Deregistration(RESOURCE_SERVICE, FAR), "small1@localhost"),
        ("nobody", "directory", P.SUBSCRIBE, c.Registration(RESOURCE_SERVICE, MINUTE, 1), "nobody@localhost"),
    ]


PAUSES = {
    "payment": ("bank", "agree PaymentMade", before_the_payment),
    "agreement": ("resource", "request Agreement", before_the_agreement),
}


def dressings(market, gang, captured):
    """Ways to put a word into somebody's mouth: who sends it, and what is made of it."""
    keys = KeyStore(market.state.keys)

    def without_seal(member):
        return lambda word: unsealed(word_of(member, *word))

    def own_word(member):
        return lambda word: sealed_by_hand(word_of(member, *word), keys, member.name)

    def in_its_name(member):
        return lambda word: sealed_by_hand(word_of(member, *word, sender=word[0]), keys, member.name)

    def replayed(member):
        """The true one's own seal on exactly this: as if captured on its way."""
        return lambda word: sealed_by_hand(word_of(member, *word, sender=word[0]), keys, address(word[0]))

    def moved(member):
        return lambda word: with_seal(unsealed(word_of(member, *word)), captured)

    for name, member in gang.items():
        yield f"{name} without seal", member, without_seal(member)
        yield f"{name} with a seal of the bank's moved", member, moved(member)
        yield f"{name} with the captured original", member, replayed(member)
        if name != "stranger":
            yield f"{name} with its own seal", member, own_word(member)
            yield f"{name} with its own seal in the other's name", member, in_its_name(member)


def is_its_right(member, facts, content):
    """Whether a party may say that of itself: a resource that it sells, a user that it orders."""
    if member.role is Role.RESOURCE:
        return isinstance(content, c.Registration | c.Deregistration)
    return isinstance(content, c.PaymentOrder) and content.order_id != facts.order


def word_of(member, _, receiver, performative, content, conversation_id, sender=""):
    return member.message(performative, receiver, content, conversation_id, sender=sender)


@pytest.mark.parametrize("pause", PAUSES)
async def test_nothing_forged_is_believed(market, gang, pause):
    role, act, words = PAUSES[pause]
    mallory = gang["mallory"]
    # a true seal of the bank's, to move about: its answer to somebody's own query
    await mallory.say(P.QUERY_REF, "bank", c.AccountQuery(fresh("nonce"), mallory.name), own := fresh("query"))
    captured = seals.parse((await mallory.answer(own, c.RequestRefused)).seal.text)
    KeyStore(market.state.keys).issue("nobody@localhost", Role.RESOURCE, mallory.now)
    hours = 1 + 2 * list(PAUSES).index(pause)
    async with stopped_purchase(market, role, act, f"request-{pause}", hours) as agreement:
        facts = Facts(agreement)
        before = await asyncio.to_thread(standing, market)
        assert before.findings == ()
        assert {each["stage"] for each in before.requests["alice"] if each["request_id"] == facts.request} == {
            "confirming"
        }
        forged = words(facts)
        assert {type(content) for _, _, _, content, _ in forged} <= SEALED
        assert all(type(content) in CONTENT_OF[performative] for _, _, performative, content, _ in forged)
        for dressing, member, made_of in dressings(market, gang, captured):
            said = [word for word in forged if not ("own seal" in dressing and is_its_right(member, facts, word[3]))]
            for word in said:
                await member.put(made_of(word), word[1])
            for receiver in dict.fromkeys(word[1] for word in said):
                await member.is_read_by(receiver)
            changes = before.changes(await asyncio.to_thread(standing, market))
            assert not changes, f"{dressing}: {changes}"
        assert not market.state.agreement("small1", facts.agreement).exists(), "small1 does not think that it is paid"
    told = [each.content for member in gang.values() for each in member.heard]
    assert not [content for content in told if isinstance(content, c.AccountStatement | c.MarketOverview)]
