"""Agents that answer every call with one document; the floor of `tests.bench.messages`. Ends when its input does.

python _echo_resources.py HOST:PORT CA_FILE ANSWER.json NAME...
"""

import asyncio
import json
import sys
from pathlib import Path

from ramp.model.acl import EncodedMessage
from ramp.xmpp.link import TransportSettings
from ramp.xmpp.transport import MarketAgent


class Echo(MarketAgent):
    """Answers at once, with what it was given."""

    answer: dict[str, str]
    document: str

    async def on_message(self, message: EncodedMessage) -> None:
        await self.send(EncodedMessage(message.peer, self.document, self.answer, message.thread))


async def main(server: str, ca_file: str, answer: str, *names: str) -> None:
    """Run the agents until standard input ends."""
    host, _, port = server.rpartition(":")
    settings = TransportSettings(servers=((host, int(port)),), ca_file=Path(ca_file))
    Echo.answer, Echo.document = json.loads(Path(answer).read_text("utf-8"))
    agents = [Echo(f"{name}@localhost", "secret", settings) for name in names]
    for agent in agents:
        await agent.start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await asyncio.gather(*(agent.stop() for agent in agents))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
