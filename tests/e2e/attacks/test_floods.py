"""Senders of too much, and of nonsense: dropped unread, counted, one line in the log; the market goes on."""

import asyncio
import re
import time

import pytest

from tests.e2e.attacks.rogue import connect, door
from tests.e2e.swarm.swarm_market import in_hours, unit, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]

FLOOD = 2_000
QUOTAS = {"messages_per_sender_per_second": 50, "burst": 200}


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
