"""Messages between agents over XMPP: starting 25 agents, a call to 20 resources, a round trip; fast and plain way.

The plain way is SPADE's and slixmpp's own code (stanza objects, Python key derivation); its rows are the reference
of the ratios. All agents live in one process, the server in another, and every message goes through it.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
        self.answers = 0
        self.expected = 0
        self.all_in = asyncio.Event()

    async def on_text(self, sender_bare: str, metadata: dict[str, str], thread: str, body: str) -> None:
        if metadata["performative"] == "cfp":
            await self.transmit(sender_bare, body, {"performative": "propose"}, thread)
            return
        self.answers += 1
        if self.answers == self.expected:
            self.all_in.set()

    async def ask(self, names: list[str]) -> float:
        """Milliseconds from the first call to the last answer."""
        self.answers, self.expected = 0, len(names)
        self.all_in.clear()
        begin = time.perf_counter()
        for name in names:
            await self.transmit(f"{name}@localhost", DOCUMENT, {"performative": "cfp"}, "c")
        await self.all_in.wait()
        return (time.perf_counter() - begin) * 1e3


def _names(fast: bool) -> list[str]:
    return [f"{'fast' if fast else 'plain'}{number}" for number in range(RESOURCES + USERS)]


async def _measure(server: ServerProcess, fast: bool) -> tuple[float, float, float]:
    settings = TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file, fast=fast)
    names = _names(fast)
    agents = [_Party(name, settings) for name in names]
    begin = time.perf_counter()
    await asyncio.gather(*(agent.start() for agent in agents))
    started = (time.perf_counter() - begin) * 1e3
    user = agents[0]
    calls = [await user.ask(names[-RESOURCES:]) for _ in range(ROUNDS)]
    trips = [await user.ask([names[-1]]) for _ in range(ROUND_TRIPS)]
    await asyncio.gather(*(agent.stop() for agent in agents))
    return started, statistics.median(calls), statistics.median(trips)


def _measure_apart(server: ServerProcess, *, fast: bool) -> tuple[float, float, float]:
    """Measure in a process of its own: the speed-ups change the libraries of the whole process."""
    program = (
        "import asyncio, sys; from pathlib import Path; from types import SimpleNamespace;"
        "from tests.bench import transport;"
        "server = SimpleNamespace(host=sys.argv[1], port=int(sys.argv[2]), ca_file=Path(sys.argv[3]));"
        f"print(*asyncio.run(transport._measure(server, {fast})))"
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
                server.ensure_accounts(dict.fromkeys(_names(True) + _names(False), "secret"))
                fast = _measure_apart(server, fast=True)
                plain = _measure_apart(server, fast=False)
        what = ("start 25 agents together", f"call {RESOURCES} resources, 2 kB", "round trip, 2 kB")
        for name, quick, slow in zip(what, fast, plain, strict=True):
            rows.append((f"xmpp {kind.kind}: {name}", quick, "ms"))
            rows.append((f"xmpp {kind.kind}: {name}, plain way / fast way", slow / quick, "times"))
    return rows


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:70} {value:10.2f} {unit}")
