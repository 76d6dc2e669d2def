"""Messages between agents over XMPP: starting 25 agents, a call to 20 resources, a round trip.

The reference of the ratios is slixmpp's own client (stanza objects, Python key derivation). All agents live in one
process, the server in another, and every message goes through it.
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from slixmpp import ClientXMPP

from ramp.rfql.encoded_message import EncodedMessage
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess
from ramp.servers.prosody import ProsodyServer, prosody_executable
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent

RESOURCES = 20
USERS = 5
ROUNDS = 15
ROUND_TRIPS = 100
DOCUMENT = "<Offer><Unit>u1</Unit><CPUHourCost>70</CPUHourCost></Offer>" * 34  # about 2 kB, as a real one


class _Party(MarketAgent):
    def __init__(self, name: str, settings: TransportSettings) -> None:
        super().__init__(f"{name}@localhost", "secret", settings)
        self.expected = 0
        self.all_in = asyncio.Event()

    async def on_message(self, message: EncodedMessage) -> None:
        if message.metadata["performative"] == "cfp":
            await self.send(replace(message, metadata={"performative": "propose"}))
            return
        self.expected -= 1
        if not self.expected:
            self.all_in.set()

    async def call(self, to: str) -> None:
        await self.send(EncodedMessage(to, DOCUMENT, {"performative": "cfp"}, "c"))


class _Plain(ClientXMPP):  # type: ignore[misc]
    """The reference: slixmpp's own client with its stanza objects."""

    def __init__(self, name: str, server: ServerProcess) -> None:
        context = ssl.create_default_context(cafile=str(server.ca_file))
        super().__init__(f"{name}@localhost", "secret", ssl_context=context)
        self.enable_direct_tls = False
        self._server = server
        self.expected = 0
        self.all_in = asyncio.Event()
        self.begun = asyncio.Event()
        self.add_event_handler("session_start", self._begin)
        self.add_event_handler("message", self._take)

    def _begin(self, _: object) -> None:
        self.send_presence(ppriority=1)
        self.begun.set()

    def _take(self, stanza: Any) -> None:
        if stanza["subject"] == "cfp":
            self.send_message(stanza["from"].bare, stanza["body"], msubject="propose", mtype="chat")
            return
        self.expected -= 1
        if not self.expected:
            self.all_in.set()

    async def start(self) -> None:
        self.connect(self._server.host, self._server.port)
        await self.begun.wait()

    async def stop(self) -> None:
        await self.disconnect()

    async def call(self, to: str) -> None:
        self.send_message(to, DOCUMENT, msubject="cfp", mtype="chat")


async def _ask(user: Any, names: list[str]) -> float:
    """Milliseconds from the first call to the last answer."""
    user.expected = len(names)
    user.all_in.clear()
    begin = time.perf_counter()
    for name in names:
        await user.call(f"{name}@localhost")
    await user.all_in.wait()
    return (time.perf_counter() - begin) * 1e3


def _names(kind: str) -> list[str]:
    return [f"{kind}{number}" for number in range(RESOURCES + USERS)]


async def _measure(server: ServerProcess, kind: str) -> tuple[float, float, float]:
    settings = TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file)
    names = _names(kind)
    agents: list[Any] = [_Party(name, settings) if kind == "agent" else _Plain(name, server) for name in names]
    begin = time.perf_counter()
    await asyncio.gather(*(agent.start() for agent in agents))
    started = (time.perf_counter() - begin) * 1e3
    calls = [await _ask(agents[0], names[-RESOURCES:]) for _ in range(ROUNDS)]
    trips = [await _ask(agents[0], [names[-1]]) for _ in range(ROUND_TRIPS)]
    await asyncio.gather(*(agent.stop() for agent in agents))
    return started, statistics.median(calls), statistics.median(trips)


def _measure_apart(server: ServerProcess, kind: str) -> tuple[float, float, float]:
    """Measure in a process of its own: the repairs of slixmpp change the whole process."""
    program = (
        "import asyncio, sys; from pathlib import Path; from types import SimpleNamespace;"
        "from tests.bench import transport;"
        "server = SimpleNamespace(host=sys.argv[1], port=int(sys.argv[2]), ca_file=Path(sys.argv[3]));"
        f"print(*asyncio.run(transport._measure(server, {kind!r})))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, server.host, str(server.port), str(server.ca_file)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    started, call, trip = (float(word) for word in output.split())
    return started, call, trip


def run() -> list[tuple[str, float, str]]:
    """Measure on every kind of server that is installed.

    Returns:
        Rows of name, value, unit.
    """
    kinds: list[type[ServerProcess]] = [EmbeddedServer]
    if prosody_executable() is not None:
        kinds.append(ProsodyServer)
    rows: list[tuple[str, float, str]] = []
    for kind in kinds:
        with tempfile.TemporaryDirectory() as state:
            begin = time.perf_counter()
            with kind(Path(state)) as server:
                rows.append((f"xmpp {server.kind}: server ready", (time.perf_counter() - begin) * 1e3, "ms"))
                server.ensure_accounts(dict.fromkeys(_names("agent") + _names("plain"), "secret"))
                ours = _measure_apart(server, "agent")
                plain = _measure_apart(server, "plain")
        what = ("start 25 agents together", f"call {RESOURCES} resources, 2 kB", "round trip, 2 kB")
        for name, quick, slow in zip(what, ours, plain, strict=True):
            rows.append((f"xmpp {kind.kind}: {name}", quick, "ms"))
            rows.append((f"xmpp {kind.kind}: {name}, slixmpp alone / ours", slow / quick, "times"))
    return rows


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:70} {value:10.2f} {unit}")
