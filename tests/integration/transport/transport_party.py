"""An agent that tests talk to."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.transport import MarketAgent

CFP = {"performative": "cfp", "ontology": "ComputeMarket"}
LIMIT_S = 300.0  # how long a test waits for what must come
PATIENT = LinkPolicy(attempt_limit_s=LIMIT_S, start_limit_s=LIMIT_S, ping_limit_s=LIMIT_S)


class Party(MarketAgent):
    """Answers a call for proposals with the same body and keeps everything else."""

    def __init__(self, name, settings, password="secret"):
        super().__init__(f"{name}@localhost", password, settings)
        self.inbox = asyncio.Queue()
        self.bounces = asyncio.Queue()
        self.failures = []

    async def on_message(self, message):
        if message.metadata.get("performative") == "cfp":
            await self.send(replace(message, metadata={"performative": "propose"}))
        else:
            self.inbox.put_nowait((message.peer, message.metadata, message.thread, message.body))

    def on_bounce(self, message, condition):
        self.bounces.put_nowait((message, condition))

    async def next(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.inbox.get()

    async def next_bounce(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.bounces.get()
