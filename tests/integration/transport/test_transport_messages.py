"""Messages, behaviours and log-ins over a real server: what arrives, what is refused, what a session survives."""

import asyncio
import base64
import random
from dataclasses import replace
from typing import ClassVar

import pytest
from slixmpp.exceptions import IqError

from ramp.errors import ConfigurationError, DocumentError, TransportError
from ramp.model.acl import EncodedMessage
from ramp.runtime.configuration.values import QuotaConfig
from ramp.xmpp import wire
from ramp.xmpp.behaviour import Courier, CyclicBehaviour
from ramp.xmpp.link import LinkPolicy, TransportSettings
from ramp.xmpp.transport import MarketAgent
from tests.integration.transport.transport_party import CFP, PATIENT, Party
from tests.waiting import LIMIT_S, soon


async def test_25_agents_start_together_and_talk(crowd):
    agents = await crowd(*(f"crowd{number}" for number in range(25)))
    users, resources = agents[:5], agents[5:]
    bodies = {user: f"<cfp user='{user.name}'>" + "<unit/>" * 300 + "</cfp>" for user in users}
    for user in users:
        for resource in resources:
            await user.send(EncodedMessage(str(resource.jid), bodies[user], CFP, f"c-{user.name}"))
    for user in users:
        answers = [await user.next() for _ in resources]
        assert {sender for sender, *_ in answers} == {str(resource.jid) for resource in resources}
        assert {rest[1:] for _, *rest in answers for rest in [tuple(rest)]} == {(f"c-{user.name}", bodies[user])}
        assert all(metadata == {"performative": "propose"} for _, metadata, _, _ in answers)


async def test_odd_characters_long_documents_and_order(crowd):
    one, two = await crowd("odd1", "odd2")
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
        await one.send(
            EncodedMessage(str(two.jid), body, {"performative": "inform", "note": "<&\"'> \u00e9"}, f"t<&>{number}")
        )
    for number, body in enumerate(bodies):
        sender, metadata, thread, received = await two.next()
        assert received == body
        assert metadata == {"performative": "inform", "note": "<&\"'> \u00e9"}
        assert (sender, thread) == (str(one.jid), f"t<&>{number}")


async def test_what_must_not_be_sent_is_refused_and_the_session_lives(crowd):
    one, two = await crowd("ref1", "ref2")
    noise = base64.b64encode(random.Random(1).randbytes(90_000)).decode()
    for arguments, error in [
        ((str(two.jid), noise, CFP, ""), DocumentError),
        ((str(two.jid), "\x00", CFP, ""), DocumentError),
        ((str(two.jid), "", CFP, ""), TransportError),
        ((str(two.jid), "x", {}, ""), TransportError),
        (("someone@example.org", "x", CFP, ""), TransportError),
        (("localhost", "x", CFP, ""), TransportError),
        (("not an address@@", "x", CFP, ""), TransportError),
    ]:
        with pytest.raises(error):
            await one.send(EncodedMessage(*arguments))
    await one.send(EncodedMessage(str(two.jid), "still here", CFP, ""))
    assert (await one.next())[3] == "still here"


async def test_unknown_domain_and_unknown_account_bounce(crowd, settings):
    federated = replace(settings, federation=True)
    agent = await crowd("bouncer", settings=federated)
    await agent.send(EncodedMessage("someone@unknown.example", "x", CFP, "c-1"))
    message, condition = await agent.next_bounce()
    assert (message.peer, condition) == ("someone@unknown.example", "remote-server-not-found")
    assert (message.thread, message.metadata) == ("c-1", CFP)
    await agent.send(EncodedMessage("ghost@localhost", "x", CFP, "c-2"))
    message, condition = await agent.next_bounce()
    assert (message.peer, condition, message.thread) == ("ghost@localhost", "service-unavailable", "c-2")
    assert agent.bounces.empty()
    assert agent.inbox.empty()
    await agent.send(EncodedMessage(str(agent.jid), "the server lives", {"performative": "inform"}, ""))
    assert (await agent.next())[3] == "the server lives"


async def test_forged_sender_is_refused_and_ends_the_session(crowd):
    mallory, victim, bank = await crowd("mallory", "victim", "bank")
    content = wire.content_of(EncodedMessage(str(bank.jid), "pay", {"performative": "request"}, ""))
    mallory.client.send_text(wire.addressed(content, to=str(bank.jid), sender=str(victim.jid), stanza_id="1"))
    await soon(lambda: mallory.story == ["up", "down", "up"])
    await mallory.send(EncodedMessage(str(bank.jid), "as myself", {"performative": "inform"}, ""))
    sender, _, _, body = await bank.next()
    assert (sender, body) == (str(mallory.jid), "as myself")


async def test_garbled_bodies_are_thrown_away(crowd):
    mallory, bank = await crowd("garbler", "garbled")
    message = EncodedMessage(str(bank.jid), "a\rb", {"performative": "request"}, "")
    stanza = wire.addressed(wire.content_of(message), to=str(bank.jid), sender=str(mallory.jid), stanza_id="1")
    packed = wire._compressed(message)
    assert packed in stanza
    mallory.client.send_text(stanza.replace(packed, "bm90IHpsaWI="))
    await mallory.send(EncodedMessage(str(bank.jid), "next", {"performative": "inform"}, ""))
    assert (await bank.next())[3] == "next"
    assert bank.dropped == 1


@pytest.mark.parametrize(
    "raw",
    [
        "<message to='x@localhost'><body>" + "y" * 300_000 + "</body></message>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><message/>",
        "<message></presence>",
        "<message>" + "<a>" * 2_000 + "</a>" * 2_000 + "</message>",
        f"<message xmlns='{'u' * 300}'/>",
        f"<message x='{'y' * 40_000}'/>",
        "<message>" + "".join(f"<a{number}/>" for number in range(1_500)) + "</message>",
    ],
    ids=["too long", "doctype", "not nested", "too deep", "long name", "long tag", "many names"],
)
async def test_hostile_streams_end_themselves_only(crowd, raw):
    mallory, one = await crowd("hostile", "bystander")
    mallory.client.send_raw(raw)
    await soon(lambda: mallory.story == ["up", "down", "up"])  # even it comes back
    await mallory.send(EncodedMessage(str(one.jid), "sorry", CFP, ""))
    assert (await mallory.next())[3] == "sorry"


async def test_stanzas_that_the_server_does_not_serve_leave_the_session_alive(crowd):
    agent = await crowd("asker")
    with pytest.raises(IqError, match="service-unavailable"):
        await agent.client["xep_0030"].get_items(jid="localhost", timeout=LIMIT_S)
    for raw in (
        "<presence to='localhost' type='subscribe'/>",
        "<presence to='nobody' type='nonsense'/>",
        "<message type='chat'><body>to nobody</body></message>",
        "<unknown xmlns='urn:x'/>",
    ):
        agent.client.send_raw(raw)
    await agent.send(EncodedMessage(str(agent.jid), "alive", {"performative": "inform"}, ""))
    while (await agent.next())[3] != "alive":
        pass


async def test_messages_before_the_set_up_is_done_come_after_it(server, crowd, settings):
    class Slow(Party):
        async def setup(self):
            ready.set()
            await go.wait()

    ready, go = asyncio.Event(), asyncio.Event()
    one = await crowd("early-sender")
    server.ensure_accounts({"early-receiver": "secret"})
    slow = Slow("early-receiver", settings)
    starting = asyncio.create_task(slow.start())
    try:
        await ready.wait()
        for number in range(20):
            await one.send(EncodedMessage(str(slow.jid), f"m{number}", {"performative": "inform"}, ""))
        await slow.send(EncodedMessage(str(one.jid), "flush", {"performative": "inform"}, ""))
        await one.next()
        go.set()
        await starting
        assert [(await slow.next())[3] for _ in range(20)] == [f"m{number}" for number in range(20)]
    finally:
        await slow.stop()


async def test_agent_that_comes_back_gets_what_was_sent_meanwhile_in_order(server, crowd, settings):
    one = await crowd("patient")
    server.ensure_accounts({"returning": "secret"})
    first = Party("returning", settings)
    await first.start()
    await first.stop()
    for number in range(10):
        await one.send(EncodedMessage("returning@localhost", f"m{number}", {"performative": "inform"}, ""))
    second = await crowd("returning")
    assert [(await second.next())[3] for _ in range(10)] == [f"m{number}" for number in range(10)]
    await one.send(EncodedMessage("returning@localhost", "afterwards", {"performative": "inform"}, ""))
    assert (await second.next())[3] == "afterwards"


async def test_never_through_spades_container(crowd):
    one, two = await crowd("cont1", "cont2")
    assert not one.container.has_agent(str(one.jid))
    assert not two.container.has_agent(str(two.jid))
    await one.send(EncodedMessage(str(two.jid), "x", CFP, ""))
    await one.next()
    with pytest.raises(TransportError, match="already started"):
        await one.start()


async def test_what_is_above_the_quota_is_dropped_unread_errors_too_and_others_are_heard(crowd, settings, caplog):
    quotas = QuotaConfig(messages_per_sender_per_second=1, burst=5)
    mallory, honest = await crowd("flooder", "patient")
    target = await crowd("flooded", settings=replace(settings, quotas=quotas))
    for kind in ("chat", "error"):
        for _ in range(500):
            mallory.client.send_raw(f"<message type='{kind}' to='{target.jid}'><body>x</body></message>")
    await honest.send(EncodedMessage(str(target.jid), "hello", {"performative": "inform"}, ""))
    await soon(lambda: target.inbox.qsize() + target.bounces.qsize() + target.dropped == 1001)
    assert 1000 - target.dropped >= quotas.burst
    assert target.dropped > 0
    heard = [target.inbox.get_nowait()[0] for _ in range(target.inbox.qsize())]
    assert str(honest.jid) in heard
    (line, *_) = [each for each in caplog.messages if str(mallory.jid) in each]
    assert "more than 1 messages per second from flooder@localhost: dropped unread" in line


STRANGE = [
    "bank@@localhost",
    "BANK@localhost/x",
    "bank@localhost/evil@localhost/x",
    "@localhost",
    "b\u00adank@localhost",
    "ban\u202ek@localhost",
    "bank@localhost/" + "r" * 2000,
]


async def test_a_sender_that_is_no_address_costs_a_line_a_minute_and_no_traceback(crowd, caplog):
    """As a server would pass it on that checks nothing: our own ones do, so the stanzas are put on the agent's line."""
    target, honest = await crowd("strange", "canonical")
    for _ in range(20):
        for source in STRANGE:
            for stanza in (
                f"<message from='{source}' type='chat'><body>pay</body></message>",
                f"<message from='{source}' type='error'><body>pay</body></message>",
                f"<presence from='{source}'/>",
                f"<iq from='{source}' type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
            ):
                target.client.data_received(stanza.encode())
    await honest.send(EncodedMessage(str(target.jid), "hello", {"performative": "inform"}, ""))
    assert (await target.next())[0] == str(honest.jid)
    assert target.dropped == 20 * len(STRANGE) * 4
    assert len([line for line in caplog.messages if "address is not canonical" in line]) == len(STRANGE)
    assert not [record for record in caplog.records if record.exc_info]


class RequestAQuote(Courier):
    performatives = ("propose", "refuse")


class CancelServer(Courier):
    performatives = ("cancel",)
    conditions: ClassVar = {"ontology": "ComputeMarket"}


class Behaving(Party):
    async def setup(self):
        self.add_behaviour(RequestAQuote())
        self.add_behaviour(CancelServer())


class Catalogue(Behaving):
    """Notes which behaviour carried a message."""

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
        await sender.send(EncodedMessage(str(catalogue.jid), body, metadata, ""))
    carried = {await catalogue.next() for _ in range(5)}
    assert carried == {
        ("RequestAQuote", "1"),
        ("RequestAQuote", "2"),
        ("CancelServer", "3"),
        ("UnmatchedMessages", "4"),
        ("UnmatchedMessages", "5"),
    }


async def test_one_message_at_a_time(crowd):
    class Careful(Behaving):
        inside = 0
        most = 0

        async def on_message(self, message):
            self.inside += 1
            self.most = max(self.most, self.inside)
            for _ in range(3):
                await asyncio.sleep(0)
            self.inside -= 1
            await super().on_message(message)

    sender = await crowd("hasty")
    careful = await crowd("careful", kind=Careful)
    for number in range(30):
        performative = ("propose", "inform", "refuse")[number % 3]
        await sender.send(EncodedMessage(str(careful.jid), f"{number}", {"performative": performative}, ""))
    assert {(await careful.next())[3] for _ in range(30)} == {f"{number}" for number in range(30)}
    assert careful.most == 1


async def test_behaviour_that_dies_is_reported_and_ends_the_agent(crowd):
    class Fragile(Party):
        async def on_message(self, message):
            raise ValueError("cannot read " + message.body)

    sender = await crowd("killer")
    fragile = await crowd("fragile", kind=Fragile)
    await sender.send(EncodedMessage(str(fragile.jid), "this", {"performative": "inform"}, ""))
    with pytest.raises(ValueError, match="cannot read this"):
        await asyncio.wait_for(fragile.wait_finished(), LIMIT_S)


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
    await agent.send(EncodedMessage(str(agent.jid), "alive", {"performative": "inform"}, ""))
    assert (await agent.next())[3] == "alive"


async def test_stop_ends_the_wait_and_leaves_no_task_behind(server, settings):
    server.ensure_accounts({"stopper": "secret"})
    before = asyncio.all_tasks()
    agent = Party("stopper", settings)
    await agent.start()
    waiting = asyncio.create_task(agent.wait_finished())
    await agent.send(EncodedMessage(str(agent.jid), "x", {"performative": "inform"}, ""))
    await agent.next()
    await agent.stop()
    await waiting
    await soon(lambda: not asyncio.all_tasks() - before)
    assert not agent.is_alive()
    with pytest.raises(TransportError, match="stopped"):
        await agent.send(EncodedMessage(str(agent.jid), "x", CFP, ""))


async def test_wrong_password_is_said_and_soon(crowd, settings):
    await crowd("owner")
    thief = Party("owner", settings, password="guess")
    with pytest.raises(TransportError, match=r"owner@localhost.*refuses the log-in"):
        await asyncio.wait_for(thief.start(), LIMIT_S)


async def test_nobody_there_is_said_after_the_limit():
    policy = LinkPolicy(start_limit_s=0.5, backoff_first_s=0.05)
    agent = Party("lost", TransportSettings(servers=(("127.0.0.1", 9),), policy=policy))
    with pytest.raises(TransportError, match=r"no XMPP session within 0\.5 s; tried 127\.0\.0\.1:9"):
        await agent.start()
    await agent.stop()


async def test_server_that_says_nothing_does_not_hang_the_start_and_is_not_knocked_at_ever_again(unused_tcp_port):
    """Each attempt without an answer gets twice the time of the last, up to eight times: five fill a second here."""
    knocked = []
    silent = await asyncio.start_server(lambda reader, _: knocked.append(reader), "127.0.0.1", unused_tcp_port)
    policy = LinkPolicy(start_limit_s=1.0, attempt_limit_s=0.05, backoff_first_s=0.001, backoff_max_s=0.001)
    settings = TransportSettings(servers=(("127.0.0.1", unused_tcp_port),), policy=policy)
    agent = Party("patient", settings)
    with pytest.raises(TransportError, match="no XMPP session"):
        await agent.start()
    silent.close()
    assert 1 <= len(knocked) <= 5


async def test_server_of_another_authority_is_refused(settings, tmp_path):
    from ramp.servers.certificate import ensure_server_certificate

    other = ensure_server_certificate(tmp_path, "localhost").ca_file
    agent = Party("careful-login", TransportSettings(servers=settings.servers, ca_file=other, policy=PATIENT))
    with pytest.raises(TransportError, match="certificate is not trusted"):
        await asyncio.wait_for(agent.start(), LIMIT_S)


async def test_next_server_of_the_list_is_tried(crowd, settings):
    policy = replace(PATIENT, backoff_first_s=0.05)
    servers = (("127.0.0.1", 9), *settings.servers)
    agent = await crowd("chooser", settings=TransportSettings(servers=servers, ca_file=settings.ca_file, policy=policy))
    assert agent.is_connected


@pytest.mark.parametrize("jid", ["nobody", "@localhost", "a@b/c", "a b@localhost", ""])
def test_bad_addresses_are_refused(jid, settings):
    class Named(Party):
        def __init__(self):
            MarketAgent.__init__(self, jid, "secret", settings)

    with pytest.raises(ConfigurationError, match="invalid XMPP address"):
        Named()
