"""The directory: renewals per second in the pure machine, and listings while the market is large.

Seals are verified before the machine sees a message.
"""

import random
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from unittest.mock import patch

from ramp.model.acl import Message, Performative
from ramp.model.contents import DirectoryQuery, Registration
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant
from ramp.model.machine_terms import StaticNeeds
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.party import DirectoryParty
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.file import load_config
from simulation.market.specs import UserSpec, configured
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.wire import Wire
from simulation.market.world import START, World

AGENTS = 1_000
HEARTBEATS = 10
SIGNERS = 200
LISTINGS = 200
MACHINES = 100_000
KINDS = 1_000
FILTERED = 15
TABLE2 = Path(__file__).parents[2] / "agents_config" / "swarms" / "table2.toml"
LARGE_CORES = 16_384
"""Ten of the twenty machines of Table 2 have fewer."""

NEEDS = {
    "one in fifty": StaticNeeds(30_000, operating_system="AIX", ram_per_core_mb=4_096, cpu_speed_mhz=3_000),
    "every other one": StaticNeeds(10_000, nodes=2),
    "nobody": StaticNeeds(1_000, architecture="sparc", node_disk_space_gb=100),
    "nearly all": StaticNeeds(64),
}
"""What is looked for, by how many of the machines meet it, roughly."""


def run() -> list[tuple[str, float, str]]:
    """Measure heartbeats of 1 000 agents, listings, and the messages of purchases."""
    timing = Timing()
    rounds = [_heartbeats(beat, timing) for beat in range(1, HEARTBEATS + 1)]
    party = DirectoryParty("directory", timing=timing)
    ours = _renewals(party, rounds)
    now = HEARTBEATS * timing.heartbeat
    query = Message(Performative.QUERY_REF, "alice", "directory", "q", DirectoryQuery("q", RESOURCE_SERVICE))
    started = perf_counter()
    for _ in range(LISTINGS):
        party.handle(query, now)
    listings = LISTINGS / (perf_counter() - started)
    load = AGENTS / (timing.heartbeat / SECOND) / ours
    return [
        (f"directory: renewals of {AGENTS} agents", ours, "1/s"),
        (f"directory: of a core for heartbeats of {AGENTS}, without verification", 100 * load, "%"),
        (
            f"directory: of a core for heartbeats of {AGENTS}, as XML with their seals verified",
            100 * AGENTS / (timing.heartbeat / SECOND) / _verified_renewals(timing),
            "%",
        ),
        (f"directory: pages of {AGENTS} agents", listings, "1/s"),
        *_filtered_listings(timing),
        *_purchases(),
    ]


def _heartbeats(beat: int, timing: Timing) -> tuple[Instant, list[Message]]:
    """Everybody's heartbeat of one round, sealed."""
    now = beat * timing.heartbeat
    messages = []
    for number in range(AGENTS):
        name = f"resource{number:04}"
        content = Registration(RESOURCE_SERVICE, timing.lease, beat)
        message = Message(Performative.SUBSCRIBE, name, "directory", name, content)
        messages.append(VirtualNotary(name, Role.RESOURCE).seal(message, now))
    return now, messages


def _renewals(party: DirectoryParty, rounds: list[tuple[Instant, list[Message]]]) -> float:
    """Renewals per second; the directory's clock looks after the leases as the host lets it."""
    started = perf_counter()
    for now, messages in rounds:
        for message in messages:
            party.handle(message, now)
            if party.deadline is not None and party.deadline <= now:
                party.tick(now)
    return len(rounds) * AGENTS / (perf_counter() - started)


def _verified_renewals(timing: Timing) -> float:
    """Renewals per second with what the agent does between transport and machine: reading, and checking the seal."""
    names = [f"resource{number:04}" for number in range(SIGNERS)]
    wire = Wire({"directory": Role.DIRECTORY, **dict.fromkeys(names, Role.RESOURCE)}, START)
    party = DirectoryParty("directory", timing=timing)
    sent = []
    for beat in range(1, HEARTBEATS + 1):
        for name in names:
            content = Registration(RESOURCE_SERVICE, timing.lease, beat)
            bare = Message(Performative.SUBSCRIBE, name, "directory", name, content)
            message = wire.notary(name).seal(bare, START)
            sent.append((message, wire.encode(message)))
    started = perf_counter()
    for message, encoded in sent:
        read, _ = wire.read(message, encoded, START)
        assert read is not None
        party.handle(read, START)
    return len(sent) / (perf_counter() - started)


def _machine(draw: random.Random) -> StaticTerms:
    return StaticTerms(
        draw.randrange(1, 40_000),
        draw.choice((1, 4, 16, 64)),
        draw.choice(("LINUX", "LINUX", "AIX", "Solaris", None)),
        draw.choice(("5.10", "6.1", None)),
        draw.choice(("x86_64", "ppc", "ia64", None)),
        draw.randrange(1_000, 5_000),
        ram_per_core_mb=draw.choice((1_024, 2_048, 4_096, 8_192, None)),
        torus=draw.random() < 0.05,
    )


def _filtered_listings(timing: Timing) -> list[tuple[str, float, str]]:
    """First pages of 100 000 machines by what is needed: of some kinds, and all different."""
    return [*_filtered(KINDS, timing), *_filtered(MACHINES, timing)]


def _filtered(kinds: int, timing: Timing) -> list[tuple[str, float, str]]:
    draw = random.Random(0)
    party = DirectoryParty("directory", timing=timing)
    drawn = [_machine(draw) for _ in range(kinds)]
    began = perf_counter()
    for number in range(MACHINES):
        name, terms = f"resource{number:06}", drawn[number % kinds]
        content = Registration(RESOURCE_SERVICE, 10 * MINUTE, 1, (terms,))
        message = Message(Performative.SUBSCRIBE, name, "directory", name, content)
        party.handle(VirtualNotary(name, Role.RESOURCE).seal(message, 0), 0)
    machines = f"{MACHINES} machines of {kinds} kinds"
    rows = [(f"directory: {machines} registered with their terms", MACHINES / (perf_counter() - began), "1/s")]
    for share, need in NEEDS.items():
        query = DirectoryQuery("q", RESOURCE_SERVICE, "", (need,))
        asked = Message(Performative.QUERY_REF, "alice", "directory", "q", query)
        took = _middle(lambda asked=asked: party.handle(asked, 0), FILTERED)
        rows.append((f"directory: a filtered listing of {machines}, {share} fits", took, "ms CPU"))
    return rows


def _middle(work: Callable[[], object], times: int) -> float:
    """The middle processor time of several, in milliseconds: what else the computer does makes no difference."""
    taken = []
    for _ in range(times):
        began = process_time()
        work()
        taken.append(1_000 * (process_time() - began))
    return median(taken)


def _purchases() -> list[tuple[str, float, str]]:
    """Messages of purchases for which most machines are too small: these are called, or are not."""
    rows = []
    for rounds in (1, 10):
        fewer = _purchase(rounds)
        with patch("ramp.protocol.user.auction.needs_of", lambda _: ()):
            everybody = _purchase(rounds)
        what = f"directory: messages of a purchase of {LARGE_CORES} cores in Table 2, {rounds} rounds"
        rows += [
            (what, fewer, "messages"),
            (f"{what}, everybody called", everybody, "messages"),
            (f"{what}, saved", 100 * (1 - fewer / everybody), "%"),
        ]
    return rows


def _purchase(rounds: int) -> int:
    ended: list[Progress] = []
    world = World(
        configured(load_config(TABLE2).resources, START - HOUR),
        [UserSpec("user1", 10**12)],
        seed=1,
        listen=lambda _, progress, __: ended.append(progress) if isinstance(progress, RequestEnded) else None,
    )
    world.run(limit=SECOND)
    before = world.sent
    begin = START // MINUTE * MINUTE + 5 * MINUTE
    unit = RequestUnit(1, 70, begin + 24 * HOUR, TotalCores(LARGE_CORES), not_before=begin, wall_time=HOUR)
    world.command("user1", RequestSubmitted("request", RequestForQuotation((unit,)), AuctionOptions(rounds=rounds)))
    world.run(until=lambda: bool(ended), limit=HOUR)
    return world.sent - before
