"""A site that answers for its machines in one stanza over XMPP.

What is written down once for all must still be each machine's own word: named and signed by itself, and missing alone
where it fails (docs/design/processes.md, "Process groups").
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace

import pytest
from certified import Buyer, address, fresh
from standing import restarts
from swarm_books import Books
from swarm_market import SHORT_TIMING, Machine, in_hours, unit, until

from ramp.cli.main import main
from ramp.errors import SealInvalid
from ramp.model.acl import Performative
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.request import RequestForQuotation
from ramp.model.seal import Role
from ramp.rfql import codec
from ramp.rfql.signing.notary import PublicNotary
from ramp.rfql.signing.trust import Trust
from ramp.xmpp.bundles import BUNDLE_KEY, pack, unpack

pytestmark = [pytest.mark.e2e, pytest.mark.full]

SMALL1, SMALL2 = address("small1"), address("small2")


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(
        kind=kind,
        users={"alice": 1_000_000},
        machines=(Machine("small1", 64, 25), Machine("small2", 64, 20)),
        accounts=["mallory", "moriarty"],
        per_process=2,
        signed_offers=True,
        timing={**SHORT_TIMING, "lease_s": 30},
    )
    market.up()
    market.wait_ready()
    return market


class Caller(Buyer):
    """A certified user that speaks to machines as a User Agent does, stanza by stanza."""

    async def _read(self):
        """Nothing: every stanza is taken from the inbox as it has come."""

    def call(self, machine, request_id, round_number=1):
        """A sealed call for proposals for one unit, as it travels."""
        content = CallForProposals(request_id, round_number, RequestForQuotation((unit(1, 8, in_hours(3)),)))
        message = self.message(Performative.CFP, machine, content, request_id)
        return codec.encode(self.notary.seal(message, self.now))

    async def tell_together(self, site, calls):
        """Say several things to machines of a site in one stanza."""
        bundle = pack(site, [replace(each, peer=machine) for machine, each in calls])
        await self.rogue.send(site, bundle.body, bundle.metadata, bundle.thread)

    def opened(self, told, machine=None):
        """A proposal, with its seal checked against the market's authority."""
        notary = PublicNotary(Trust(self.keys.ca_certificates()))
        return codec.decode(
            replace(told, peer=machine or told.peer), self.name, notary, self.now, sealed=frozenset({Proposal})
        )


@pytest.fixture
async def mallory(market, rogues):
    started = restarts(market)
    caller = await Caller.enter(market, rogues, "mallory", Role.USER)
    yield caller
    caller.leave()
    assert restarts(market) == started


async def site_of(caller):
    """Whom both machines name in an offer of their own."""
    sites = set()
    for machine in (SMALL1, SMALL2):
        await caller.put(caller.call(machine, fresh("request")), machine)
        told = await caller.rogue.next()
        assert (told.peer, BUNDLE_KEY in told.metadata) == (machine, False)
        assert caller.opened(told).content.offers
        sites.add(told.metadata["site"])
    (site,) = sites
    assert site in (SMALL1, SMALL2)
    return site


async def test_offers_come_in_one_stanza_each_named_and_signed_by_its_own_machine(mallory):
    site = await site_of(mallory)
    request_id = fresh("request")
    await mallory.tell_together(site, [(each, mallory.call(each, request_id)) for each in (SMALL1, SMALL2)])
    told = await mallory.rogue.next()
    assert (told.peer, told.metadata[BUNDLE_KEY]) == (site, "1")
    parts = unpack(told)
    assert {part.peer for part in parts} == {SMALL1, SMALL2}
    for part in parts:
        message = mallory.opened(part)
        assert (message.seal.signer, message.seal.role) == (part.peer, Role.RESOURCE)
        assert [offer.resource for offer in message.content.offers] == [part.peer]
        other = SMALL1 if part.peer == SMALL2 else SMALL2
        with pytest.raises(SealInvalid):  # nobody's offer passes for the other's
            mallory.opened(part, other)


async def test_what_is_wrong_for_one_machine_is_answered_for_the_other(mallory):
    """A call that was changed after its sealing is dropped by the machine that it is for, and by nobody else."""
    site = await site_of(mallory)
    request_id = fresh("request")
    good, changed = mallory.call(SMALL1, request_id), mallory.call(SMALL2, request_id)
    changed = replace(changed, body=changed.body.replace("<", "\n<", 1))
    await mallory.tell_together(site, [(SMALL2, changed), (SMALL1, good), (address("alice"), good)])
    parts = unpack(await mallory.rogue.next())
    assert [part.peer for part in parts] == [SMALL1]


def test_who_is_too_small_is_not_called_and_told_all_the_same(market):
    """Both machines have stated to the directory what they are, so the buyer knows before it calls."""
    events = list(market.submit("alice", fresh("request"), [unit(1, 100, in_hours(1))], quote_only=True))
    assert [event["resources"] for event in events if event["event"] == "round_opened"] == [0]
    outcome = events[-1]["outcome"]
    assert outcome["status"] == "no_offers", outcome
    told = {each["resource"]: each["refusal"] for each in outcome["rounds"][0]["refusals"]}
    assert told.keys() == {SMALL1, SMALL2}
    assert {(each["code"], each["nearest"]) for each in told.values()} == {("machine_too_small", "64 cores")}


def test_a_machine_whose_agent_fails_is_missing_and_its_neighbour_sells(market):
    """Its journal is damaged and its agent told to begin again: it stays down, and says why; the other sells."""
    outcome = market.buy("alice", fresh("request"), [unit(1, 8, in_hours(1))])
    assert outcome["status"] == "committed", outcome
    assert outcome["units"][0]["offer"]["resource"] == SMALL2, "the cheaper one"
    journal = market.state.journals / "small2.sqlite"
    with contextlib.closing(sqlite3.connect(journal)) as connection, connection:
        statement = "UPDATE journal SET record = replace(record, '\"at\"', '\"when\"')"
        assert connection.execute(statement).rowcount > 0
    main(["restart", "small2", "--state-dir", str(market.state.path)])
    until(lambda: market.agent("small2")["state"] == "broken", lambda: json.dumps(market.agent("small2")))
    for _ in range(2):
        outcome = market.buy("alice", fresh("request"), [unit(1, 8, in_hours(5))], rounds=1)
        assert outcome["status"] == "committed", outcome
        assert outcome["units"][0]["offer"]["resource"] == SMALL1
        assert {offer["resource"] for offer in outcome["rounds"][0]["offers"]} == {SMALL1}
    assert restarts(market)["small1"] == 0
    assert market.agent("small1")["state"] == "ready"
    Books(market).come_right()
