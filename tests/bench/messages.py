"""What an auction costs in stanzas, bytes and processor time, and how near that is to what cannot be saved.

Stanzas and bytes are counted in the simulated market, whose parties say what the agents say: no heartbeat and no clock
of another agent is among them. Time and processor time are those of the twenty resources of Table 2 over XMPP.

The reference is the floor, of the same run: twenty plain messages with the bytes of a call of the first round, and
twenty answers with the bytes of a proposal, through the same client, the asker in one process and the answering
agents in another, as in the market.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from ramp.client import access, swarm
from ramp.control.requests import Submit
from ramp.model.acl import EncodedMessage, Message
from ramp.model.contents import CallForProposals, ClockQuery, ClockReading, Proposal, Registered, Registration
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.progress import Progress, RequestEnded
from ramp.rfql.codec import encode
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.state_folder import StateFolder
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess
from ramp.servers.prosody import ProsodyServer, prosody_executable
from ramp.xmpp import wire
from ramp.xmpp.link import TransportSettings
from ramp.xmpp.transport import MarketAgent
from simulation.market.actors import COMPOSITION
from simulation.market.observing import Observer
from simulation.market.specs import UserSpec, configured
from simulation.market.wire import Wire
from simulation.market.world import START, World
from tests.blocking_line import connected

TAKES_MINUTES = "it launches a market on each kind of server"
ECHO = Path(__file__).with_name("_echo_resources.py")
TABLE2 = Path(__file__).parents[2] / "agents_config" / "swarms" / "table2.toml"
PAPER_S = {1: 18.81, 10: 151.26}
"""Seconds of an auction with commitment and payment in the paper (Table 4), by its rounds of a fixed interval."""

RESOURCES = 20
PER_PROCESS = 20
FLOOR_CALLS = 40
WARM_UP = 3
REPEATS = 9
ROUNDS = 30
KEEPING_UP = (Registration, Registered, ClockQuery, ClockReading)
"""What agents say without an auction as well."""


@dataclass
class _Count(Observer):
    """Everything that a simulated auction says, as stanzas."""

    stanzas: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    calls: list[EncodedMessage] = field(default_factory=list)
    answers: list[EncodedMessage] = field(default_factory=list)
    ended: bool = False

    def sent(self, message: Message, delays: Sequence[int], now: Instant) -> None:
        if isinstance(message.content, KEEPING_UP):
            return
        encoded = encode(message)
        what = message.performative.value
        self.stanzas[what] += 1
        self.bytes[what] += len(_stanza(encoded).encode("utf-8"))
        if isinstance(message.content, CallForProposals):
            self.calls.append(encoded)
        elif isinstance(message.content, Proposal):
            self.answers.append(encoded)

    def watch(self, name: str, progress: Progress, now: Instant) -> None:
        self.ended = self.ended or isinstance(progress, RequestEnded)


def _stanza(encoded: EncodedMessage) -> str:
    content = wire.content_of(encoded)
    return wire.addressed(content, to="resource10@localhost", sender="user1@localhost", stanza_id="0" * 32)


def _count(rounds: int) -> _Count:
    """What one purchase in the market of Table 2 says."""
    config = load_config(TABLE2)
    count = _Count()
    names = [each.name for each in config.resources]
    world = World(
        configured(config.resources, START - HOUR),
        [UserSpec("user1", 10**12)],
        seed=1,
        listen=count.watch,
        observer=count,
        wire=Wire(COMPOSITION.roles(names, ["user1"]), START),
    )
    world.run(limit=SECOND)
    count.stanzas.clear()
    command = RequestSubmitted("request", request(START), AuctionOptions(rounds=rounds))
    world.command("user1", command)
    world.run(until=lambda: count.ended, limit=HOUR)
    return count


def request(now: Instant) -> RequestForQuotation:
    start = now // MINUTE * MINUTE + 5 * MINUTE
    unit = RequestUnit(1, 70, start + 2 * HOUR, TotalCores(16), not_before=start, wall_time=HOUR)
    return RequestForQuotation((unit,))


def documents() -> tuple[EncodedMessage, EncodedMessage]:
    """A call of the first round and a proposal, as they are written."""
    count = _count(1)
    return count.calls[0], count.answers[0]


# -- the floor ---------------------------------------------------------------------------------------------------


class Asker(MarketAgent):
    """Sends one message to everybody, and waits for as many."""

    missing = 0
    all_in: asyncio.Event

    async def on_message(self, message: EncodedMessage) -> None:
        self.missing -= 1
        if not self.missing:
            self.all_in.set()

    async def ask(self, names: Sequence[str], call: EncodedMessage) -> float:
        """Seconds from the first message to the last answer."""
        self.missing, self.all_in = len(names), asyncio.Event()
        begin = time.perf_counter()
        for name in names:
            await self.send(replace(call, peer=f"{name}@localhost"))
        await self.all_in.wait()
        return time.perf_counter() - begin


@dataclass
class _Floor:
    """Calls with all their answers: seconds of each, and processor seconds of everybody for all of them."""

    seconds: list[float]
    used: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def per_call(self) -> float:
        return self.used / len(self.seconds)


@contextmanager
def answering(
    kind: type[ServerProcess],
    askers: Sequence[str],
    names: Sequence[str],
    answer: EncodedMessage,
    per_process: int = PER_PROCESS,
) -> Iterator[TransportSettings]:
    """A server with accounts for askers, and agents that give all that comes one answer, in processes of their own."""
    with tempfile.TemporaryDirectory(prefix="ramp-floor-") as folder:
        said = Path(folder) / "answer.json"
        said.write_text(json.dumps([answer.metadata, answer.body]), "utf-8")
        with kind(Path(folder) / "server") as server:
            server.ensure_accounts(dict.fromkeys([*askers, *names], "secret"))
            lots = [names[first : first + per_process] for first in range(0, len(names), per_process)]
            place = f"{server.host}:{server.port}"
            command = [sys.executable, str(ECHO), place, str(server.ca_file), str(said)]
            pipe = subprocess.PIPE
            agents = [subprocess.Popen([*command, *lot], stdin=pipe, stdout=pipe) for lot in lots]
            try:
                for process in agents:
                    assert process.stdout is not None
                    assert process.stdout.readline() == b"ready\n"
                yield TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file)
            finally:
                for process in agents:
                    process.terminate()
                    process.wait()


def _floor(kind: type[ServerProcess], count: _Count) -> _Floor:
    names = [f"echo{number}" for number in range(RESOURCES)]
    with answering(kind, ["asker"], names, count.answers[0]) as settings:
        return asyncio.run(_ask_often(settings, names, count.calls[0]))


async def _ask_often(settings: TransportSettings, names: Sequence[str], call: EncodedMessage) -> _Floor:
    asker = Asker("asker@localhost", "secret", settings)
    await asker.start()
    everybody = [psutil.Process(), *psutil.Process().children(recursive=True)]
    for _ in range(WARM_UP):
        await asker.ask(names, call)
    begin = used(everybody)
    seconds = [await asker.ask(names, call) for _ in range(FLOOR_CALLS)]
    taken = used(everybody) - begin
    await asker.stop()
    return _Floor(seconds, taken)


def used(processes: Sequence[psutil.Process]) -> float:
    """Processor seconds so far."""
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


# -- the market --------------------------------------------------------------------------------------------------


def auction(state: StateFolder, rounds: int, *, quote_only: bool) -> RequestOutcome:
    """Have `user1` buy or quote one unit of Table 2's market; return the outcome."""
    with connected(state.socket("user1")) as line:
        options = AuctionOptions(rounds=rounds, quote_only=quote_only)
        *_, ended = line.events(Submit(write_request(request(SystemClock().now())), options=options))
    assert isinstance(ended, RequestEnded), ended
    assert ended.outcome.status in ("committed", "quoted"), ended
    return ended.outcome


def _market(config: Path, folder: Path) -> dict[str, float]:
    """Medians over a market: a round, purchases of one and of ten rounds, in seconds and processor seconds."""
    state = StateFolder(folder)
    swarm.start_detached(config, state)
    try:
        status = access.status(state)
        assert status is not None
        market = psutil.Process(status.pid).children(recursive=True)
        for _ in range(WARM_UP):
            auction(state, 3, quote_only=False)
        begin = used(market)
        rounds = [
            auction(state, 1, quote_only=True).rounds[0].duration / SECOND for _ in range(ROUNDS)
        ]  # later ones call fewer
        per_quote = (used(market) - begin) / ROUNDS
        begin = used(market)
        ten = [auction(state, 10, quote_only=False).duration / SECOND for _ in range(REPEATS)]
        per_purchase = (used(market) - begin) / REPEATS
        one = [auction(state, 1, quote_only=False).duration / SECOND for _ in range(REPEATS)]
    finally:
        swarm.stop(state)
    return {
        "round": statistics.median(rounds),
        "quote cpu": per_quote,
        "ten": statistics.median(ten),
        "ten cpu": per_purchase,
        "one": statistics.median(one),
    }


def _over_xmpp(kind: type[ServerProcess], count: _Count) -> list[tuple[str, float, str]]:
    floors = [_floor(kind, count)]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "swarm.toml"
        config.write_text(TABLE2.read_text("utf-8").replace('kind = "embedded"', f'kind = "{kind.kind}"'), "utf-8")
        values = _market(config, Path(folder) / "state")
    floors.append(_floor(kind, count))
    floor = min(each.median for each in floors)
    floor_cpu = min(each.per_call for each in floors)
    name = kind.kind
    return [
        (f"{name}: floor, {RESOURCES} messages and answers", floor * 1e3, "ms"),
        (f"{name}: floor, processor time", floor_cpu * 1e3, "ms"),
        (f"{name}: a round of {RESOURCES} resources", values["round"] * 1e3, "ms"),
        (f"{name}: a round / floor", values["round"] / floor, "x"),
        (f"{name}: a quote in one round, processor time", values["quote cpu"] * 1e3, "ms"),
        (f"{name}: a quote in one round / floor, processor time", values["quote cpu"] / floor_cpu, "x"),
        (f"{name}: 1-round purchase", values["one"], "s"),
        (f"{name}: 10-round purchase", values["ten"], "s"),
        (f"{name}: 10-round purchase / floor", values["ten"] / floor, "x"),
        (f"{name}: 10-round purchase, processor time", values["ten cpu"], "s"),
        (f"{name}: paper's 1 round / ours", PAPER_S[1] / values["one"], "x"),
        (f"{name}: paper's 10 rounds / ours", PAPER_S[10] / values["ten"], "x"),
    ]


def run() -> list[tuple[str, float, str]]:
    """Count, and measure over the servers that are here."""
    rows: list[tuple[str, float, str]] = []
    for rounds in (1, 10):
        count = _count(rounds)
        said = sum(count.stanzas.values())
        rows.append((f"{rounds}-round purchase, {RESOURCES} resources: stanzas", said, ""))
        rows += [(f"{rounds}-round purchase: {what}", number, "") for what, number in count.stanzas.most_common(3)]
        rows.append((f"{rounds}-round purchase: bytes of stanzas", sum(count.bytes.values()) / 1000, "kB"))
        sizes = [len(_stanza(each).encode("utf-8")) for each in count.calls]
        rows.append((f"{rounds}-round purchase: longest call", max(sizes) / 1000, "kB"))
    kinds: list[type[ServerProcess]] = [EmbeddedServer]
    if prosody_executable() is not None:
        kinds.append(ProsodyServer)
    for kind in kinds:
        rows += _over_xmpp(kind, count)
    return rows
