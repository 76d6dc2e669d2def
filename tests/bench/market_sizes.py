"""Markets of many resources and many users over XMPP on one computer: who buys, how long it takes, and what it takes.

    python -m tests.bench market_sizes

Every user buys one unit once, in a few rounds, some of them at a time; then nothing may be left open.

The reference is the floor of the same run: as many plain messages with the bytes of a call, and as many answers with
the bytes of a proposal, through the same client and as many processes, of a sample of the calls.
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from ramp.client import access, swarm
from ramp.control.requests import Submit
from ramp.control.status import SwarmStatus
from ramp.errors import RampError
from ramp.model.acl import EncodedMessage
from ramp.model.instant import HOUR, SECOND
from ramp.protocol.events import AuctionOptions
from ramp.protocol.progress import RequestEnded
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.state_folder import StateFolder
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess
from ramp.servers.prosody import ProsodyServer, prosody_executable
from ramp.xmpp.link import TransportSettings
from tests.bench.messages import Asker, answering, documents, request, used
from tests.blocking_line import connected
from tests.chaos.checks import of_files

TAKES_MINUTES = "it launches markets of up to a thousand resources and two hundred users"

SIZES = ((20, 5), (60, 15), (200, 50), (1_000, 200))
"""Resources and users."""

PER_PROCESS = 50
ROUNDS = 2
AT_ONCE = 10
ROUND_LIMIT_S = 300
FLOOR_CALLS = 8
HEARTBEAT_S = 60
"""A thousand registrations each five seconds, as by default, would be a directory's whole processor."""

KINDS: dict[str, type[ServerProcess]] = {each.kind: each for each in (EmbeddedServer, ProsodyServer)}


@dataclass(frozen=True)
class Size:
    """What is launched."""

    resources: int
    users: int
    kind: str
    at_once: int

    @property
    def label(self) -> str:
        return f"{self.kind}: {self.resources} resources, {self.users} users"


@dataclass
class Bought:
    """How the purchases went; seconds and bytes."""

    launch: float = 0.0
    whole: float = 0.0
    each: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    used: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    wrong: list[str] = field(default_factory=list)


def configuration(size: Size, per_process: int = PER_PROCESS) -> str:
    lines = ["[market]", f"resources_per_process = {per_process}"]
    lines += ["[server]", f'kind = "{size.kind}"']
    lines += ["[timing]", f"heartbeat_s = {HEARTBEAT_S}", f"lease_s = {3 * HEARTBEAT_S}", "confirm_limit_s = 120"]
    lines += ["[machines.node]", 'plugin = "steady"', "cores = 4096", "options = { load = 0.0 }"]
    for number in range(size.users):
        lines += ["[[users]]", f'name = "user{number}"', "deposit = 1000000"]
    for number in range(size.resources):
        lines += ["[[resources]]", f'name = "node{number}"', 'machine = "node"']
        lines += [f"start_price = {60 + number % 8}", f"minimum_price = {20 + number % 29}"]
    return "\n".join(lines) + "\n"


def _buy(state: StateFolder, user: str, found: Bought, lock: threading.Lock) -> None:
    options = AuctionOptions(rounds=ROUNDS, round_time=ROUND_LIMIT_S * SECOND)
    begin = time.monotonic()
    try:
        with connected(state.socket(user)) as line:
            *_, last = line.events(Submit(write_request(request(SystemClock().now() + HOUR)), options=options))
        outcome = str(last.outcome.status) if isinstance(last, RequestEnded) else type(last).__name__
    except (RampError, OSError) as error:
        outcome = f"{type(error).__name__}: {error}"[:100]
    with lock:
        found.outcomes[outcome] += 1
        found.each.append(time.monotonic() - begin)


def _shares(status: SwarmStatus) -> dict[str, list[psutil.Process]]:
    """The market's processes by whose they are."""
    found: dict[int, str] = {status.pid: "market's own"}
    for agent in status.agents:
        role = agent.role if agent.role in ("user", "resource") else "market's own"
        found.setdefault(agent.pid, {"user": "users", "resource": "resources"}.get(role, role))
    if status.server.pid is not None:
        found[status.server.pid] = "server"
    shares: dict[str, list[psutil.Process]] = {}
    for pid, whose in found.items():
        shares.setdefault(whose, []).append(psutil.Process(pid))
    return shares


def _used(shares: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Processor seconds so far."""
    return {whose: used(processes) for whose, processes in shares.items()}


def _memory(shares: dict[str, list[psutil.Process]]) -> dict[str, int]:
    """Bytes, what processes share divided among them (PSS)."""
    return {whose: sum(each.memory_full_info().pss for each in found) for whose, found in shares.items()}


def measure(size: Size) -> Bought:
    """Launch a market, let every user buy, and look whether the books are right."""
    found, lock = Bought(), threading.Lock()
    with tempfile.TemporaryDirectory(prefix="ramp-size-") as folder:
        config = Path(folder) / "swarm.toml"
        config.write_text(configuration(size), "utf-8")
        state = StateFolder(Path(folder) / "state")
        begin = time.monotonic()
        status = swarm.start_detached(config, state)
        found.launch = time.monotonic() - begin
        try:
            shares = _shares(status)
            before, began = _used(shares), time.monotonic()
            with ThreadPoolExecutor(size.at_once) as pool:
                for number in range(size.users):
                    pool.submit(_buy, state, f"user{number}", found, lock)
            found.whole = time.monotonic() - began
            found.used = {whose: after - before[whose] for whose, after in _used(shares).items()}
            found.memory = _memory(shares)
            at_end = access.status(state)
            assert at_end is not None, "the market is gone"
            found.restarts = sum(agent.restarts for agent in at_end.agents)
            findings, paid = of_files([(load_config(config), state)])
            found.wrong = [each for lines in findings.values() for each in lines]
            if len(paid) != found.outcomes["committed"]:
                found.wrong.append(f"{len(paid)} agreements are paid, {found.outcomes['committed']} are committed")
        finally:
            swarm.stop(state)
    return found


# -- the floor ---------------------------------------------------------------------------------------------------


def floor(size: Size) -> tuple[float, float]:
    """Seconds and processor seconds of a call to all resources with all answers."""
    call, answer = documents()
    names = [f"echo{number}" for number in range(size.resources)]
    askers = [f"asker{number}" for number in range(min(size.at_once, size.users))]
    with answering(KINDS[size.kind], askers, names, answer, PER_PROCESS) as settings:
        return asyncio.run(_ask(settings, askers, names, call))


async def _ask(
    settings: TransportSettings, askers: Sequence[str], names: Sequence[str], call: EncodedMessage
) -> tuple[float, float]:
    agents = [Asker(f"{name}@localhost", "secret", settings) for name in askers]
    for agent in agents:
        await agent.start()
    here = [psutil.Process(), *psutil.Process().children(recursive=True)]
    turns = -(-FLOOR_CALLS // len(agents))
    await agents[0].ask(names, call)
    before, began = used(here), time.monotonic()

    async def in_turn(agent: Asker) -> None:
        for _ in range(turns):
            await agent.ask(names, call)

    await asyncio.gather(*(in_turn(agent) for agent in agents))
    calls = turns * len(agents)
    found = (time.monotonic() - began) / calls, (used(here) - before) / calls
    for agent in agents:
        await agent.stop()
    return found


# -- what is told ------------------------------------------------------------------------------------------------


def rows(size: Size, found: Bought, least: tuple[float, float]) -> list[tuple[str, float, str]]:
    """What is told of one size."""
    what, calls = size.label, ROUNDS * size.users
    seconds_used = sum(found.used.values())
    told: list[tuple[str, float, str]] = [
        (f"{what}: launch", found.launch, "s"),
        (f"{what}: all purchases, {size.at_once} at once", found.whole, "s"),
        (f"{what}: the floor of their {ROUNDS} rounds", least[0] * calls, "s"),
        (f"{what}: all purchases / floor", found.whole / (least[0] * calls), "x"),
        (f"{what}: a purchase, median", statistics.median(found.each), "s"),
        (f"{what}: a purchase, longest", max(found.each), "s"),
        (f"{what}: processor time of all purchases", seconds_used, "s"),
        (f"{what}: processor time / floor's", seconds_used / (least[1] * calls), "x"),
    ]
    told += [(f"{what}: processor time, {whose}", seconds, "s") for whose, seconds in found.used.items()]
    told += [(f"{what}: memory, {whose}", number / 1e6, "MB") for whose, number in found.memory.items()]
    told += [(f"{what}: {outcome}", number, "users") for outcome, number in found.outcomes.most_common()]
    told += [(f"{what}: restarts of agents", found.restarts, ""), (f"{what}: findings", len(found.wrong), "")]
    told += [(f"{what}: {each}", 1, "") for each in found.wrong[:5]]
    return told


def sizes(wanted: Sequence[tuple[int, int]], kinds: Sequence[str], at_once: int) -> Iterator[tuple[str, float, str]]:
    """Measure sizes, each with its floor; a market that does not come up is told, and the others are measured."""
    for resources, users in wanted:
        for kind in kinds:
            size = Size(resources, users, kind, at_once)
            least = floor(size)
            sys.stderr.write(f"{size.label} ...\n")
            try:
                found = measure(size)
            except RampError as error:
                yield f"{size.label}: {error}"[:300], 0, "not up"
            else:
                yield from rows(size, found, least)


def run() -> list[tuple[str, float, str]]:
    """Measure all sizes over the servers that are here; of Prosody the smaller ones."""
    told = [*sizes(SIZES, ["embedded"], AT_ONCE)]
    if prosody_executable() is not None:
        told += sizes(SIZES[:3], ["prosody"], AT_ONCE)
    return told
