"""Bundles of hostile callers: what is in them counts for their own sender, and for the machines that they are for."""

import asyncio
import signal

import pytest

from ramp.control.requests import Submit
from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation
from ramp.model.seal import Role
from ramp.protocol.events import Approval, AuctionOptions
from ramp.protocol.progress import ApprovalAsked
from ramp.rfql import codec
from ramp.rfql.request_for_quotation import write_request
from ramp.xmpp.bundles import PARTS_MAX, UNPACKED_MAX, pack
from tests.e2e.attacks.certified import address, fresh, sealed_by_hand, unsealed
from tests.e2e.attacks.standing import standing
from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import SMALL_AND_BIG, in_hours, own_id, unit, until

pytestmark = pytest.mark.e2e

P = Performative
MACHINES = [machine.name for machine in SMALL_AND_BIG]


@pytest.fixture(scope="module")
def market(module_market, kind):
    """All machines share a process, so they are a site."""
    market = module_market(
        kind=kind,
        users={"alice": 1_000_000},
        accounts=["mallory", "rival"],
        per_process=len(MACHINES),
        quotas={"messages_per_sender_per_second": 5_000, "burst": 15_000},  # what is dropped unread proves nothing here
    )
    market.up()
    return market


def call(caller, machine, request_id, wanted, document=""):
    """A call for proposals, or another document in its place."""
    content = c.CallForProposals(request_id, 1, RequestForQuotation((wanted,)))
    encoded = unsealed(caller.message(P.CFP, machine, content, request_id))
    return type(encoded)(encoded.peer, document or encoded.body, encoded.metadata, encoded.thread)


def offers_of(messages):
    return {(message.sender, message.content.offers[0].offer_id) for message in messages}


def complaints(market, text):
    return [line for path in market.state.logs.glob("*.log") for line in path.read_text().splitlines() if text in line]


async def test_a_site_takes_from_a_bundle_what_its_sender_might_say_to_each_machine(market, enter):
    """Alice considers the offers of her machines; mallory's bundle speaks of hers, and of much else."""
    mallory = await enter("mallory", Role.USER)
    request, hers, wanted = fresh("request"), own_id("hers"), unit(1, 8, in_hours(1))
    own = await mallory.offer("small1", wanted)
    submission = Submit(write_request(RequestForQuotation((wanted,))), hers, AuctionOptions(2, approval=Approval.ASK))
    with market.line("alice") as line:
        events = line.events(submission)
        asked = await asyncio.to_thread(lambda: next(each for each in events if isinstance(each, ApprovalAsked)))
        (offer,) = asked.offers
        assert offer.resource == address("small1")
        before = await asyncio.to_thread(standing, market)
        refused = mallory.message(P.CANCEL, "small1", c.HoldCancelled(hers, offer.offer_id), hers)
        accepted = c.Acceptance(own.request_id, own.offer_id)
        bundle = pack(
            address("small1"),
            [
                *(call(mallory, machine, request, wanted) for machine in MACHINES),
                # a conversation of somebody else's
                call(mallory, "small1", hers, wanted),
                unsealed(mallory.message(P.REJECT_PROPOSAL, "small1", c.Rejection(hers, offer.offer_id, "lost"), hers)),
                sealed_by_hand(refused, mallory.keys, mallory.name),
                sealed_by_hand(refused, mallory.keys, address("alice")),
                # a conversation of its own, and what must be said to the machine itself
                codec.encode(mallory.sealed(P.ACCEPT_PROPOSAL, "small1", accepted, own.request_id)),
                # whoever does not belong to the site, and nonsense
                *(call(mallory, name, "not-here", wanted) for name in ("bank", "alice", "directory", "nobody")),
                call(mallory, "big1", request, wanted, "<junk/>"),
            ],
        )
        for count in (1, 2):  # the same one twice
            await mallory.put(bundle, "small1")
            found = offers_of(await mallory.answers(count * len(MACHINES), request, c.Proposal))
            assert sorted(sender for sender, _ in found) == [address(name) for name in sorted(MACHINES)]
            ((_, mine),) = offers_of(await mallory.answers(count, hers, c.Proposal))
            assert mine != offer.offer_id
        # too many messages, and too long ones
        many = [call(mallory, "small1", "too-many", wanted)] * (PARTS_MAX + 1)
        await mallory.put(pack(address("small1"), many), "small1")
        long = [call(mallory, "small2", "too-long", wanted, "x" * (UNPACKED_MAX // 2))] * 3
        await mallory.put(pack(address("small2"), [call(mallory, "small2", "too-long", wanted), *long]), "small2")
        for name in MACHINES:
            mallory.used(name, P.CFP.value)
            await mallory.is_read_by(name)
        assert not [each for each in mallory.heard if each.conversation_id in ("not-here", "too-many", "too-long")]
        assert not [each for each in mallory.heard if isinstance(each.content, c.HoldGranted | c.HoldCancelled)]
        assert complaints(market, f"a bundle must have 1 to {PARTS_MAX} messages, got {PARTS_MAX + 1}")
        assert complaints(market, "the documents of a bundle are too long")
        assert complaints(market, "from mallory@localhost dropped: not accepted in a bundle")
        assert not before.changes(await asyncio.to_thread(standing, market))
        approval = {"verb": "offers_approved", "request_id": hers, "approved": True}
        await asyncio.to_thread(market.ask, "alice", approval)
        *_, ended = await asyncio.to_thread(list, events)
    assert [each.offer for each in ended.outcome.units] == [offer]
    await asyncio.to_thread(Books(market).come_right)


async def test_a_buyer_believes_nobody_who_speaks_for_others_unasked(market, enter):
    """The site stands still while its machines bid, and a certified resource bids in their names, and in its own."""
    rival = await enter("rival", Role.RESOURCE)
    request, begin = own_id("bids"), in_hours(5)
    wanted = unit(1, 8, begin)
    learnt = await asyncio.to_thread(market.buy, "alice", own_id("learning"), [unit(1, 8, in_hours(3))])
    assert learnt["status"] == "committed", learnt
    market.kill("small1", signal.SIGSTOP)
    try:
        with market.submitted("alice", request, [wanted]) as events:
            opened = await asyncio.to_thread(lambda: next(each for each in events if each["event"] == "round_opened"))
            assert opened["resources"] == len(MACHINES)
            bids = []
            for name in (*MACHINES, "rival"):
                cheap = Offer(
                    offer_id=fresh("offer"), request_id=request, unit=1, resource=address(name), cpu_hour_cost=1,
                    start=begin, end=wanted.deadline, cores=8, load=0.0, valid_for=wanted.deadline - begin,
                )  # fmt: skip
                word = rival.message(P.PROPOSE, "alice", c.Proposal(request, 1, (cheap,)), request, sender=name)
                bids.append(type(unsealed(word))(address(name), unsealed(word).body, unsealed(word).metadata, request))
            await rival.put(pack(address("alice"), bids), "alice")
            await rival.is_read_by("alice")
            assert complaints(market, "message from rival@localhost for small1@localhost dropped: not named by it")
            market.kill("small1", signal.SIGCONT)
            *_, last = await asyncio.to_thread(list, events)
    finally:
        market.kill("small1", signal.SIGCONT)
    outcome = last["outcome"]
    assert outcome["status"] == "committed", outcome
    offered = {each["resource"] for record in outcome["rounds"] for each in record["offers"]}
    assert offered == {address(name) for name in MACHINES}
    assert outcome["units"][0]["offer"]["cpu_hour_cost"] == SMALL_AND_BIG[0].price
    for receiver in ("bank", "directory"):
        await rival.put(pack(address(receiver), bids), receiver)
        text = f"{receiver}@localhost: bundle from rival@localhost dropped: this agent accepts none"
        await asyncio.to_thread(until, lambda text=text: complaints(market, text), text)
