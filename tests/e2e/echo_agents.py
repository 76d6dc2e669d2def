"""A program of its own: agents that answer each call for proposals with its body. Ends when its input does.

python echo_agents.py HOST:PORT CA_FILE NAME...
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from ramp.rfql.encoded_message import EncodedMessage
from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent


class Echo(MarketAgent):
    """Answers at once."""

    async def on_message(self, message: EncodedMessage) -> None:
        """Answer a call for proposals."""
        if message.metadata.get("performative") == "cfp":
            await self.send(replace(message, metadata={"performative": "propose"}))


async def main(server: str, ca_file: str, *names: str) -> None:
    """Run the agents until standard input ends."""
    host, _, port = server.rpartition(":")
    settings = TransportSettings(
        servers=((host, int(port)),), ca_file=Path(ca_file), policy=LinkPolicy(backoff_first_s=0.1, backoff_max_s=1.0)
    )
    agents = [Echo(f"{name}@localhost", "secret", settings) for name in names]
    await asyncio.gather(*(agent.start() for agent in agents))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await asyncio.gather(*(agent.stop() for agent in agents))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
