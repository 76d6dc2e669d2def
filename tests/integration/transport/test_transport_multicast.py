"""An agent that lets the server make the copies: found by asking, and plain messages wherever nothing spreads."""

from __future__ import annotations

import asyncio
import time

from transport_party import LIMIT_S, Party

from ramp.xmpp.multicast import agent as multicast_agent
from ramp.xmpp.multicast.addresses import Service
from ramp.xmpp.multicast.agent import MulticastAgent
from ramp.xmpp.settings import TransportSettings

INFORM = {"performative": "inform"}


class Caller(MulticastAgent, Party):
    """Spreads, and keeps what comes."""


async def found(caller):
    async with asyncio.timeout(LIMIT_S):
        while caller.service is None:
            await asyncio.sleep(0.01)
    return caller.service


def addresses(agents):
    return [str(agent.jid) for agent in agents]


async def test_one_stanza_a_lot_reaches_everybody_as_it_was_written(crowd, settings):
    caller = await crowd("mc-caller", kind=Caller)
    plain = await crowd("mc-plain", kind=Caller, settings=TransportSettings(
        servers=settings.servers, ca_file=settings.ca_file, fast=False
    ))  # fmt: skip
    receivers = await crowd(*(f"mc{number}" for number in range(7)))
    for who in (caller, plain):
        assert await found(who) == Service("localhost", 100)
        who.service = Service("localhost", 3)
        body = "<cfp>\r\n" + "<unit/>" * 2000 + "</cfp>"  # long enough to be compressed
        assert await who.spread(addresses(receivers), body, INFORM, "thread") == []
        for receiver in receivers:
            assert await receiver.next() == (str(who.jid), INFORM, "thread", body)
        assert (who.counters.sent, who.counters.stanzas) == (7, 3)


async def test_what_a_service_refuses_goes_plainly_once_and_it_is_left_alone(crowd, monkeypatch):
    caller = await crowd("mc-refused", kind=Caller)
    receivers = await crowd("mc-r1", "mc-r2")
    await found(caller)
    caller.service = Service("nowhere.localhost", 50)  # no such domain: the server answers in its name
    caller.client.service_errors = "nowhere.localhost", caller._refused
    assert await caller.spread(addresses(receivers), "first", INFORM, "") == []
    for receiver in receivers:
        assert (await receiver.next())[3] == "first"
    assert (caller.counters.respread, caller.counters.misaddressed) == (2, 0)
    assert await caller.spread(addresses(receivers), "second", INFORM, "") == addresses(receivers)
    later = time.monotonic() + multicast_agent.REST_S
    monkeypatch.setattr(multicast_agent.time, "monotonic", lambda: later)
    assert await caller.spread(addresses(receivers), "third", INFORM, "") == []
    for receiver in receivers:
        assert (await receiver.next())[3] == "third"
        assert receiver.inbox.empty()


async def test_nothing_is_spread_to_others_to_one_or_without_a_service(crowd, settings):
    caller = await crowd("mc-few", kind=Caller)
    receivers = addresses(await crowd("mc-f1", "mc-f2"))
    await found(caller)
    elsewhere = ["far@example.org", "UPPER@localhost", "localhost"]
    assert await caller.spread([*elsewhere, receivers[0]], "x", INFORM, "") == [*elsewhere, receivers[0]]
    assert await caller.spread([*elsewhere, *receivers], "x", INFORM, "") == elsewhere
    switched_off = TransportSettings(servers=settings.servers, ca_file=settings.ca_file, multicast=False)
    off = await crowd("mc-off", kind=Caller, settings=switched_off)
    assert await off.spread(receivers, "x", INFORM, "") == receivers
    assert off.counters.sent == 0


async def test_errors_in_the_name_of_a_service_that_is_not_ours_change_nothing(crowd):
    """A refusal counts for what is under way only, and once; others are dropped like any stanza from no account."""
    caller = await crowd("mc-lied", kind=Caller)
    receivers = await crowd("mc-l1", "mc-l2")
    await found(caller)
    refusal = {"type": "error", "id": "guess", "from": "localhost"}
    element = multicast_agent.ElementTree.Element("{jabber:client}message", refusal)
    caller.client._spawn_event(element)
    element.set("from", "elsewhere.example")
    caller.client._spawn_event(element)
    assert (caller.counters.respread, caller.counters.misaddressed) == (0, 1)
    assert await caller.spread(addresses(receivers), "x", INFORM, "") == []
    for receiver in receivers:
        assert (await receiver.next())[3] == "x"
