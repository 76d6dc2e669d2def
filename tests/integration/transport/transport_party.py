"""An agent that tests talk to."""

import asyncio
import contextlib
from dataclasses import replace

from ramp.xmpp.link import LinkPolicy, TransportSettings
from ramp.xmpp.transport import MarketAgent
from tests.waiting import LIMIT_S

CFP = {"performative": "cfp", "ontology": "ComputeMarket"}
PATIENT = LinkPolicy(attempt_limit_s=LIMIT_S, start_limit_s=LIMIT_S, ping_limit_s=LIMIT_S)
QUICK = replace(PATIENT, backoff_first_s=0.05, backoff_max_s=0.5)


class Party(MarketAgent):
    """Answers a call for proposals with the same body and keeps everything else."""

    def __init__(self, name, settings, password="secret"):
        super().__init__(f"{name}@localhost", password, settings)
        self.inbox = asyncio.Queue()
        self.bounces = asyncio.Queue()
        self.story = []

    async def on_message(self, message):
        if message.metadata.get("performative") == "cfp":
            await self.send(replace(message, metadata={"performative": "propose"}))
        else:
            self.inbox.put_nowait((message.peer, message.metadata, message.thread, message.body))

    def on_bounce(self, message, condition):
        self.bounces.put_nowait((message, condition))

    def _came_up(self, resumed, again):
        super()._came_up(resumed, again)
        self.story.append("resumed" if resumed else "up")

    def _went_down(self, reason):
        super()._went_down(reason)
        if not self._stopped:
            self.story.append("down")

    async def next(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.inbox.get()

    async def next_bounce(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.bounces.get()

    async def next_body(self):
        return (await self.next())[3]


@contextlib.asynccontextmanager
async def parties(server, *names, policy=QUICK, **options):
    """Started agents of a server, which end with the block."""
    settings = TransportSettings(
        servers=((server.host, server.port),), ca_file=server.ca_file, policy=policy, **options
    )
    await asyncio.to_thread(server.ensure_accounts, dict.fromkeys(names, "secret"))
    agents = [Party(name, settings) for name in names]
    await asyncio.gather(*(agent.start() for agent in agents))
    try:
        yield agents
    finally:
        await asyncio.gather(*(agent.stop() for agent in agents))
