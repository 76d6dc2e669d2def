"""Agents on the embedded server: a crowd starting together, odd documents, liars, bounces, behaviours, failures."""

from __future__ import annotations

import asyncio
import base64
import random
from typing import ClassVar

import pytest
from slixmpp.exceptions import IqError

from ramp.agents import wire
from ramp.agents.behaviour import Courier, CyclicBehaviour
from ramp.agents.reconnect import LinkPolicy
from ramp.agents.server_embedded import EmbeddedServer
from ramp.agents.settings import TransportSettings
from ramp.agents.transport import MarketAgent
from ramp.errors import ConfigurationError, DocumentTooLarge, MalformedXml, TransportError

LIMIT_S = 20.0  # how long a test waits for what must come


class Party(MarketAgent):
    """Answers a call for proposals with the same body and keeps everything else."""

    def __init__(self, name, settings, password="secret"):
        super().__init__(f"{name}@localhost", password, settings)
        self.inbox = asyncio.Queue()
        self.bounces = asyncio.Queue()
        self.failures = []

    async def on_text(self, sender_bare, metadata, thread, body):
        if metadata.get("performative") == "cfp":
            await self.transmit(sender_bare, body, {"performative": "propose"}, thread)
        else:
            self.inbox.put_nowait((sender_bare, metadata, thread, body))

    def on_bounce(self, bounce):
        self.bounces.put_nowait(bounce)

    async def next(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.inbox.get()

    async def next_bounce(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.bounces.get()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with EmbeddedServer(tmp_path_factory.mktemp("xmpp")) as running:
        yield running
    assert "Traceback" not in running.log_file.read_text()


@pytest.fixture
def settings(server):
    return TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file)


@pytest.fixture
async def crowd(settings):
    """Makes started agents and stops them in the end."""
    agents = []

    async def make(*names, kind=Party, **options):
        made = [kind(name, options.get("settings", settings)) for name in names]
        agents.extend(made)
        await asyncio.gather(*(agent.start() for agent in made))
        return made[0] if len(made) == 1 else made

    yield make
    await asyncio.gather(*(agent.stop() for agent in agents))


CFP = {"performative": "cfp", "ontology": "ComputeMarket"}


async def test_25_agents_start_together_and_talk(crowd):
    agents = await crowd(*(f"crowd{number}" for number in range(25)))
    users, resources = agents[:5], agents[5:]
    bodies = {user: f"<cfp user='{user.name}'>" + "<unit/>" * 300 + "</cfp>" for user in users}
    for user in users:
        for resource in resources:
            await user.transmit(str(resource.jid), bodies[user], CFP, f"c-{user.name}")
    for user in users:
        answers = [await user.next() for _ in resources]
        assert {sender for sender, *_ in answers} == {str(resource.jid) for resource in resources}
        assert {rest[1:] for _, *rest in answers for rest in [tuple(rest)]} == {(f"c-{user.name}", bodies[user])}
        assert all(metadata == {"performative": "propose"} for _, metadata, _, _ in answers)


@pytest.mark.parametrize("fast", [True, False])
async def test_odd_characters_long_documents_and_order(crowd, settings, fast):
    some = TransportSettings(servers=settings.servers, ca_file=settings.ca_file, fast=fast)
    one, two = await crowd(f"odd1{fast}", f"odd2{fast}", settings=some)
    noise = base64.b64encode(random.Random(7).randbytes(45_000)).decode()
    bodies = [
        "<a>\r\n\t'\"&amp;]]></a>",
        "\U0001f600 \u00e9\u4e2d\u200d ' \" < > & ]]>",
        "<?xml version='1.0' encoding='UTF-8'?>\n<a/>",
        " leading and trailing ",
        "x" * 500_000,
        noise,
    ]
    for number, body in enumerate(bodies):
        await one.transmit(str(two.jid), body, {"performative": "inform", "note": "<&\"'> \u00e9"}, f"t<&>{number}")
    for number, body in enumerate(bodies):
        sender, metadata, thread, received = await two.next()
        assert received == body
        assert metadata == {"performative": "inform", "note": "<&\"'> \u00e9"}
        assert (sender, thread) == (str(one.jid), f"t<&>{number}")


async def test_plain_and_fast_agents_understand_each_other(crowd, settings):
    plain = await crowd(
        "plain", settings=TransportSettings(servers=settings.servers, ca_file=settings.ca_file, fast=False)
    )
    fast = await crowd("fast")
    await plain.transmit(str(fast.jid), "<cfp>\r\n</cfp>", CFP, "c")
    assert (await plain.next())[3] == "<cfp>\r\n</cfp>"
    await fast.transmit(str(plain.jid), "<cfp/>", CFP, "")
    assert (await fast.next()) == (str(plain.jid), {"performative": "propose"}, "", "<cfp/>")


async def test_what_must_not_be_sent_is_refused_and_the_session_lives(crowd):
    one, two = await crowd("ref1", "ref2")
    noise = base64.b64encode(random.Random(1).randbytes(90_000)).decode()
    for arguments, error in [
        ((str(two.jid), noise, CFP, ""), DocumentTooLarge),
        ((str(two.jid), "\x00", CFP, ""), MalformedXml),
        ((str(two.jid), "", CFP, ""), TransportError),
        ((str(two.jid), "x", {}, ""), TransportError),
        (("someone@example.org", "x", CFP, ""), TransportError),
        (("localhost", "x", CFP, ""), TransportError),
        (("not an address@@", "x", CFP, ""), TransportError),
    ]:
        with pytest.raises(error):
            await one.transmit(*arguments)
    assert one.counters.sent == 0
    await one.transmit(str(two.jid), "still here", CFP, "")
    assert (await one.next())[3] == "still here"


async def test_unknown_domain_and_unknown_account_bounce(crowd, settings):
    federated = TransportSettings(servers=settings.servers, ca_file=settings.ca_file, federation=True)
    agent = await crowd("bouncer", settings=federated)
    await agent.transmit("someone@unknown.example", "x", CFP, "c-1")
    bounce = await agent.next_bounce()
    assert (bounce.peer_bare, bounce.condition) == ("someone@unknown.example", "remote-server-not-found")
    assert (bounce.thread, bounce.metadata) == ("c-1", CFP)
    await agent.transmit("ghost@localhost", "x", CFP, "c-2")
    bounce = await agent.next_bounce()
    assert (bounce.peer_bare, bounce.condition, bounce.thread) == ("ghost@localhost", "service-unavailable", "c-2")
    assert agent.counters.bounced == 2
    assert agent.inbox.empty()
    await agent.transmit(str(agent.jid), "the server lives", {"performative": "inform"}, "")
    assert (await agent.next())[3] == "the server lives"


async def test_forged_sender_is_replaced_by_the_true_one(crowd):
    mallory, victim, bank = await crowd("mallory", "victim", "bank")
    stanza = wire.encode_message(
        to=str(bank.jid),
        sender=str(victim.jid),
        body="pay",
        metadata={"performative": "request"},
        thread="",
        stanza_id="1",
    )
    mallory.client.post(stanza)
    assert (await bank.next())[0] == str(mallory.jid)


async def test_garbled_bodies_are_thrown_away(crowd):
    mallory, bank = await crowd("garbler", "garbled")
    stanza = wire.encode_message(
        to=str(bank.jid),
        sender=str(mallory.jid),
        body="a\rb",
        metadata={"performative": "request"},
        thread="",
        stanza_id="1",
    )
    packed = wire._compressed("", "a\rb", 1)
    assert packed in stanza
    mallory.client.post(stanza.replace(packed, "bm90IHpsaWI="))
    await mallory.transmit(str(bank.jid), "next", {"performative": "inform"}, "")
    assert (await bank.next())[3] == "next"
    assert bank.counters.refused == 1


@pytest.mark.parametrize(
    "raw",
    [
        "<message to='x@localhost'><body>" + "y" * 300_000 + "</body></message>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><message/>",
        "<message></presence>",
    ],
    ids=["too long", "doctype", "not nested"],
)
async def test_hostile_streams_end_themselves_only(crowd, raw):
    mallory, one = await crowd("hostile", "bystander")
    mallory.client.send_raw(raw)
    async with asyncio.timeout(LIMIT_S):
        while mallory.counters.disconnects == 0:
            await asyncio.sleep(0.01)
        await mallory.wait_connected()  # and even it comes back
    await mallory.transmit(str(one.jid), "sorry", CFP, "")
    assert (await mallory.next())[3] == "sorry"


async def test_stanzas_that_pyjabber_stumbles_over_leave_the_session_alive(crowd):
    agent = await crowd("asker")
    with pytest.raises(IqError, match="internal-server-error"):
        await agent.client["xep_0030"].get_items(jid="localhost", timeout=LIMIT_S)
    for raw in (
        "<presence to='localhost' type='subscribe'/>",
        "<presence to='nobody' type='nonsense'/>",
        "<message type='chat'><body>to nobody</body></message>",
        "<unknown xmlns='urn:x'/>",
    ):
        agent.client.send_raw(raw)
    await agent.transmit(str(agent.jid), "alive", {"performative": "inform"}, "")
    while (await agent.next())[3] != "alive":
        pass


async def test_messages_before_the_set_up_is_done_are_kept(crowd, settings):
    class Slow(Party):
        async def setup(self):
            ready.set()
            await go.wait()

    ready, go = asyncio.Event(), asyncio.Event()
    one = await crowd("early-sender")
    slow = Slow("early-receiver", settings)
    starting = asyncio.create_task(slow.start())
    try:
        await ready.wait()
        for number in range(20):
            await one.transmit(str(slow.jid), f"m{number}", {"performative": "inform"}, "")
        # what arrives meanwhile is in the agent, not on the line: its own answer comes back over the same stream
        await slow.transmit(str(one.jid), "flush", {"performative": "inform"}, "")
        await one.next()
        async with asyncio.timeout(LIMIT_S):
            while len(slow._early) < 20:
                await asyncio.sleep(0.01)
        go.set()
        await starting
        assert [(await slow.next())[3] for _ in range(20)] == [f"m{number}" for number in range(20)]
    finally:
        await slow.stop()


async def test_agent_that_comes_back_gets_what_was_sent_meanwhile_in_order(crowd, settings):
    one = await crowd("patient")
    first = Party("returning", settings)
    await first.start()
    await first.stop()
    for number in range(10):
        await one.transmit("returning@localhost", f"m{number}", {"performative": "inform"}, "")
    second = await crowd("returning")
    assert [(await second.next())[3] for _ in range(10)] == [f"m{number}" for number in range(10)]
    await one.transmit("returning@localhost", "afterwards", {"performative": "inform"}, "")
    assert (await second.next())[3] == "afterwards"


async def test_never_through_spades_container(crowd):
    one, two = await crowd("cont1", "cont2")
    assert not one.container.has_agent(str(one.jid))
    assert not two.container.has_agent(str(two.jid))
    await one.transmit(str(two.jid), "x", CFP, "")
    await one.next()
    with pytest.raises(TransportError, match="was started before"):
        await one.start()


# -- behaviours -------------------------------------------------------------------------------------------------


class RequestAQuote(Courier):
    performatives = ("propose", "refuse")


class CancelServer(Courier):
    performatives = ("cancel",)
    conditions: ClassVar = {"ontology": "ComputeMarket"}


class Catalogue(Party):
    """Notes which behaviour carried a message."""

    async def setup(self):
        self.add_behaviour(RequestAQuote())
        self.add_behaviour(CancelServer())

    async def carry(self, message):
        carrier = asyncio.current_task().get_coro().cr_frame.f_locals["self"]
        self.inbox.put_nowait((type(carrier).__name__, message.body))


async def test_messages_go_to_the_behaviour_named_for_them_and_else_to_the_default(crowd):
    sender = await crowd("teller")
    catalogue = await crowd("catalogue", kind=Catalogue)
    cancel = {"performative": "cancel", "ontology": "ComputeMarket"}
    for body, metadata in [
        ("1", {"performative": "propose"}),
        ("2", {"performative": "refuse"}),
        ("3", cancel),
        ("4", {"performative": "cancel", "ontology": "else"}),
        ("5", {"performative": "inform"}),
    ]:
        await sender.transmit(str(catalogue.jid), body, metadata, "")
    carried = {await catalogue.next() for _ in range(5)}
    assert carried == {
        ("RequestAQuote", "1"),
        ("RequestAQuote", "2"),
        ("CancelServer", "3"),
        ("UnmatchedMessages", "4"),
        ("UnmatchedMessages", "5"),
    }


async def test_one_message_at_a_time(crowd):
    class Careful(Party):
        inside = 0
        most = 0

        async def setup(self):
            self.add_behaviour(RequestAQuote())
            self.add_behaviour(CancelServer())

        async def on_text(self, sender_bare, metadata, thread, body):
            self.inside += 1
            self.most = max(self.most, self.inside)
            for _ in range(3):
                await asyncio.sleep(0)
            self.inside -= 1
            await super().on_text(sender_bare, metadata, thread, body)

    sender = await crowd("hasty")
    careful = await crowd("careful", kind=Careful)
    for number in range(30):
        performative = ("propose", "inform", "refuse")[number % 3]
        await sender.transmit(str(careful.jid), f"{number}", {"performative": performative}, "")
    assert {(await careful.next())[3] for _ in range(30)} == {f"{number}" for number in range(30)}
    assert careful.most == 1


async def test_behaviour_that_dies_is_reported_and_ends_the_agent(crowd):
    class Fragile(Party):
        async def on_text(self, sender_bare, metadata, thread, body):
            raise ValueError("cannot read " + body)

    sender = await crowd("killer")
    fragile = await crowd("fragile", kind=Fragile)
    await sender.transmit(str(fragile.jid), "this", {"performative": "inform"}, "")
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(ValueError, match="cannot read this"):
            await fragile.wait_finished()


async def test_any_behaviour_that_dies_is_reported_by_name(crowd):
    class Clockwork(CyclicBehaviour):
        async def on_start(self):
            raise RuntimeError("no spring")

        async def run(self):
            raise AssertionError("is not reached")

    class Tolerant(Party):
        def on_behaviour_failed(self, name, error):
            self.inbox.put_nowait((name, str(error)))

    agent = await crowd("tolerant", kind=Tolerant)
    agent.add_behaviour(Clockwork())
    assert await agent.next() == ("Clockwork", "no spring")
    await agent.transmit(str(agent.jid), "alive", {"performative": "inform"}, "")
    assert (await agent.next())[3] == "alive"


async def test_stop_ends_the_wait_and_leaves_no_task_behind(settings):
    before = asyncio.all_tasks()
    agent = Party("stopper", settings)
    await agent.start()
    waiting = asyncio.create_task(agent.wait_finished())
    await agent.transmit(str(agent.jid), "x", {"performative": "inform"}, "")
    await agent.next()
    await agent.stop()
    await waiting
    async with asyncio.timeout(LIMIT_S):
        while asyncio.all_tasks() - before:
            await asyncio.sleep(0.01)
    assert not agent.is_alive()
    with pytest.raises(TransportError, match="stopped"):
        await agent.transmit(str(agent.jid), "x", CFP, "")


# -- log-ins that fail ------------------------------------------------------------------------------------------


async def test_wrong_password_is_said_and_soon(crowd, settings):
    await crowd("owner")
    thief = Party("owner", settings, password="guess")
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(TransportError, match=r"owner@localhost.*refuses the log-in"):
            await thief.start()


async def test_nobody_there_is_said_after_the_limit():
    policy = LinkPolicy(start_limit_s=0.5, backoff_first_s=0.05)
    agent = Party("lost", TransportSettings(servers=(("127.0.0.1", 9),), verify_certificate=False, policy=policy))
    with pytest.raises(TransportError, match=r"no XMPP session within 0\.5 s; tried 127\.0\.0\.1:9"):
        await agent.start()
    await agent.stop()


async def test_server_that_says_nothing_does_not_hang_the_start(unused_tcp_port):
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", unused_tcp_port)
    policy = LinkPolicy(start_limit_s=1.0, attempt_limit_s=0.2, backoff_first_s=0.05)
    agent = Party(
        "mute", TransportSettings(servers=(("127.0.0.1", unused_tcp_port),), verify_certificate=False, policy=policy)
    )
    with pytest.raises(TransportError, match="no XMPP session"):
        await agent.start()
    silent.close()


async def test_server_of_another_authority_is_refused(settings, tmp_path):
    from ramp.agents.certificate import ensure_server_certificate

    other = ensure_server_certificate(tmp_path, "localhost").ca_file
    agent = Party("careful-login", TransportSettings(servers=settings.servers, ca_file=other))
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(TransportError, match="certificate is not trusted"):
            await agent.start()


async def test_next_server_of_the_list_is_tried(crowd, settings):
    policy = LinkPolicy(backoff_first_s=0.05)
    servers = (("127.0.0.1", 9), *settings.servers)
    agent = await crowd("chooser", settings=TransportSettings(servers=servers, ca_file=settings.ca_file, policy=policy))
    assert agent.is_connected


@pytest.mark.parametrize("jid", ["nobody", "@localhost", "a@b/c", "a b@localhost", ""])
def test_bad_addresses_are_refused(jid, settings):
    class Named(Party):
        def __init__(self):
            MarketAgent.__init__(self, jid, "secret", settings)

    with pytest.raises(ConfigurationError, match="no XMPP address"):
        Named()
