"""Behaviours of an agent on a real server: which gets a message, and what happens when one dies."""

import asyncio
from typing import ClassVar

import pytest

from ramp.errors import TransportError
from ramp.rfql.encoded_message import EncodedMessage
from ramp.xmpp.behaviour import Courier, CyclicBehaviour
from tests.integration.transport.transport_party import CFP, LIMIT_S, Party


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
    class Careful(Party):
        inside = 0
        most = 0

        async def setup(self):
            self.add_behaviour(RequestAQuote())
            self.add_behaviour(CancelServer())

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
    async with asyncio.timeout(LIMIT_S):
        while asyncio.all_tasks() - before:
            await asyncio.sleep(0.01)
    assert not agent.is_alive()
    with pytest.raises(TransportError, match="stopped"):
        await agent.send(EncodedMessage(str(agent.jid), "x", CFP, ""))
