"""The directory: renewals per second in the pure machine, and listings while the market is large.

Reference: a directory that keeps a list and looks through all of it for each heartbeat and for each lease that may have
ended. Seals are verified before the machine sees a message; `signatures` tells what that costs.
"""

from __future__ import annotations

from time import perf_counter

from ramp.model.acl import Message, Performative
from ramp.model.contents import DirectoryQuery, Registration
from ramp.model.instant import SECOND, Instant
from ramp.model.seal import Role
from ramp.model.services import RESOURCE_SERVICE
from ramp.protocol.directory.party import DirectoryParty
from ramp.protocol.events import MessageReceived
from ramp.protocol.timing import Timing
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.wire import Wire
from simulation.market.world import START

AGENTS = 1_000
HEARTBEATS = 10
SCANNED_HEARTBEATS = 2
SIGNERS = 200
LISTINGS = 200


def run() -> list[tuple[str, float, str]]:
    """Measure heartbeats of 1 000 agents, ours and by linear scan in the same run."""
    timing = Timing()
    rounds = [_heartbeats(beat, timing) for beat in range(1, HEARTBEATS + 1)]
    party = DirectoryParty("directory", timing=timing)
    ours = _renewals(party, rounds)
    scan = _renewals(_LinearScan(timing), rounds[:SCANNED_HEARTBEATS])
    now = HEARTBEATS * timing.heartbeat
    query = MessageReceived(
        Message(Performative.QUERY_REF, "alice", "directory", "q", DirectoryQuery("q", RESOURCE_SERVICE))
    )
    started = perf_counter()
    for _ in range(LISTINGS):
        party.handle(query, now)
    listings = LISTINGS / (perf_counter() - started)
    load = AGENTS / (timing.heartbeat / SECOND) / ours
    return [
        (f"directory: renewals of {AGENTS} agents", ours, "1/s"),
        ("directory: the same by linear scan", scan, "1/s"),
        ("directory: renewal, faster than by linear scan", ours / scan, "x"),
        (f"directory: of a core for heartbeats of {AGENTS}, without verification", 100 * load, "%"),
        (
            f"directory: of a core for heartbeats of {AGENTS}, as XML with their seals verified",
            100 * AGENTS / (timing.heartbeat / SECOND) / _verified_renewals(timing),
            "%",
        ),
        (f"directory: pages of {AGENTS} agents", listings, "1/s"),
    ]


def _heartbeats(beat: int, timing: Timing) -> tuple[Instant, list[MessageReceived]]:
    """Everybody's heartbeat of one round, sealed."""
    now = beat * timing.heartbeat
    messages = []
    for number in range(AGENTS):
        name = f"resource{number:04}"
        content = Registration(RESOURCE_SERVICE, timing.lease, beat)
        message = Message(Performative.SUBSCRIBE, name, "directory", name, content)
        messages.append(MessageReceived(VirtualNotary(name, Role.RESOURCE).seal(message, now)))
    return now, messages


def _renewals(party: DirectoryParty | _LinearScan, rounds: list[tuple[Instant, list[MessageReceived]]]) -> float:
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
            sent.append((name, wire.encode(wire.notary(name).seal(bare, START))))
    started = perf_counter()
    for name, encoded in sent:
        party.handle(MessageReceived(wire.decode(name, "directory", encoded, START)), START)
    return len(sent) / (perf_counter() - started)


class _LinearScan:
    """What one writes first: one list of (name, number, end of lease)."""

    def __init__(self, timing: Timing) -> None:
        self.deadline: Instant | None = None
        self._timing = timing
        self._leases: list[tuple[str, int, Instant]] = []

    def handle(self, event: MessageReceived, now: Instant) -> None:
        message = event.message
        content = message.content
        assert isinstance(content, Registration)
        known = next((each for each in self._leases if each[0] == message.sender), None)
        if known is None or content.number > known[1]:
            self._leases = [each for each in self._leases if each[0] != message.sender]
            self._leases.append((message.sender, content.number, now + content.lease))
            self._leases.sort()
        self.deadline = min(until for _, _, until in self._leases)

    def tick(self, now: Instant) -> None:
        self._leases = [each for each in self._leases if each[2] > now]
        self.deadline = min((until for _, _, until in self._leases), default=None)
