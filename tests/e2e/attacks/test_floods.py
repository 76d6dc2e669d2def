"""Senders of too much, and of nonsense: dropped unread, counted, one line in the log; the market goes on."""

from __future__ import annotations

import asyncio
import logging
import re
import time

import pytest
from rogue import LIMIT_S, connect, door
from swarm_market import in_hours, unit, until

from ramp.runtime.configuration.values import QuotaConfig
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent

pytestmark = [pytest.mark.e2e, pytest.mark.full]

FLOOD = 2_000
QUOTAS = {"messages_per_sender_per_second": 50, "burst": 200}


class Target(MarketAgent):
    """Keeps what it reads."""

    def __init__(self, name, server, quotas):
        settings = TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file, quotas=quotas)
        super().__init__(f"{name}@localhost", server.accounts[name], settings)
        self.read = []

    async def on_message(self, message):
        self.read.append((message.peer, message.body))


async def until_true(condition):
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_what_is_above_the_quota_is_dropped_and_counted_and_others_are_heard(xmpp_server, rogues, caplog):
    caplog.set_level(logging.WARNING)
    xmpp_server.ensure_accounts({"target": "a", "mallory": "b", "honest": "c"})
    target = Target("target", xmpp_server, QuotaConfig(**QUOTAS))
    await target.start()
    try:
        mallory, honest = await rogues(xmpp_server, "mallory"), await rogues(xmpp_server, "honest")
        begun = time.monotonic()
        for number in range(FLOOD):
            await mallory.send("target@localhost", f"m{number}")
        await honest.send("target@localhost", "hello")
        await mallory.written()
        counters = target.counters
        await until_true(lambda: counters.received + counters.over_quota == FLOOD + 1)
        lasted = time.monotonic() - begun
        read = [sender for sender, _ in target.read].count("mallory@localhost")
        assert QUOTAS["burst"] <= read <= QUOTAS["burst"] + QUOTAS["messages_per_sender_per_second"] * lasted + 1
        assert counters.over_quota == FLOOD - read
        assert ("honest@localhost", "hello") in target.read
        lines = [line for line in caplog.messages if "mallory@localhost" in line]
        assert len(lines) == 1 + int(lasted // 60), lines
        assert "more than 50 messages per second from mallory@localhost: dropped unread" in lines[0]
    finally:
        await target.stop()


async def test_errors_count_as_messages(embedded_server, rogues):
    embedded_server.ensure_accounts({"target": "a", "mallory": "b"})
    target = Target("target", embedded_server, QuotaConfig(messages_per_sender_per_second=1, burst=5))
    await target.start()
    try:
        mallory = await rogues(embedded_server, "mallory")
        for _ in range(100):
            mallory.write("<message type='error' to='target@localhost'><body>x</body></message>")
        await until_true(lambda: target.counters.bounced + target.counters.over_quota == 100)
        assert target.counters.over_quota >= 90
    finally:
        await target.stop()


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(kind=kind, users={"alice": 1_000_000}, accounts=["mallory"], quotas=QUOTAS)
    market.up()
    market.wait_ready()
    return market


def test_an_honest_buyer_buys_amid_a_flood(market):
    begin = in_hours(1)
    targets = ("bank", "directory", "alice", "small1", "big1")

    async def flood():
        rogue = await connect(door(market), "mallory")
        events = asyncio.create_task(
            asyncio.to_thread(market.buy, "alice", "request-amid-a-flood", [unit(1, 8, begin), unit(2, 100, begin)])
        )
        for number in range(FLOOD):
            for name in targets:
                await rogue.send(f"{name}@localhost", f"<junk number='{number}'/>", {"performative": "request"})
            if number % 50 == 0:
                await rogue.written()
                await asyncio.sleep(0.01)  # lets the buyer's thread run
        await rogue.written()
        outcome = await events
        # it stays until it has been heard: what a server has not read of a line that is cut is lost
        await asyncio.to_thread(until, heard, lambda: f"every agent drops the flood: {lines()}")
        await rogue.close()
        return outcome

    def lines():
        logs = [path.read_text() for path in market.state.logs.glob("*.log")]
        return [line for log in logs for line in log.splitlines() if "from mallory@localhost: dropped unread" in line]

    def heard():
        return len(lines()) >= len(targets)

    restarts = {entry["name"]: entry["restarts"] for entry in market.status()["agents"]}
    begun = time.monotonic()
    outcome = asyncio.run(flood())
    assert outcome["status"] == "committed", outcome
    agents = [re.search(r": (\w+)@localhost: more than", line).group(1) for line in lines()]
    assert set(agents) == set(targets)
    assert len(agents) <= len(targets) * (1 + int((time.monotonic() - begun) // 60))
    assert {entry["name"]: entry["restarts"] for entry in market.status()["agents"]} == restarts


STRANGE = [
    "bank@@localhost",
    "BANK@localhost/x",
    "bank@localhost/evil@localhost/x",
    "@localhost",
    "b\u00adank@localhost",
    "ban\u202ek@localhost",
    "bank@localhost/" + "r" * 2000,
]


async def test_a_sender_that_is_no_address_costs_a_line_a_minute_and_no_traceback(embedded_server, rogues, caplog):
    """As a server would pass it on that checks nothing: our own ones do, so the stanzas are put on the agent's line."""
    caplog.set_level(logging.WARNING)
    embedded_server.ensure_accounts({"target": "a", "honest": "c"})
    target = Target("target", embedded_server, QuotaConfig())
    await target.start()
    try:
        for _ in range(200):
            for source in STRANGE:
                for stanza in (
                    f"<message from='{source}' type='chat'><body>pay</body></message>",
                    f"<message from='{source}' type='error'><body>pay</body></message>",
                    f"<presence from='{source}'/>",
                    f"<iq from='{source}' type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
                ):
                    target.client.data_received(stanza.encode())
        honest = await rogues(embedded_server, "honest")
        await honest.send("target@localhost", "hello")
        await until_true(lambda: target.read)
        assert target.read == [("honest@localhost", "hello")]
        assert target.counters.misaddressed == 200 * len(STRANGE) * 4
        assert len([line for line in caplog.messages if "address is not canonical" in line]) == len(STRANGE)
        assert not [record for record in caplog.records if record.exc_info]
    finally:
        await target.stop()
