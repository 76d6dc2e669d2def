"""Runs a market plan in virtual time: the same parties and hosts as the agents run, in one process, repeatable.

The paper's response times (its section 12) come from agents that answer one request after another. So every process of
the real deployment is a station that serves in the order in which work is given to it: the users' process, each process
of Resource Agents, the market's own (bank and directory), and the XMPP server, which every message passes. The service
times are means measured over XMPP (`Costs`). A message's whole way is booked when it is sent, each station at the first
gap after the message's arrival there; a message that is sent later can use a gap but never displaces one that is
booked, which is the model's one simplification.
"""

from __future__ import annotations

import cProfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from ramp.model.acl import Message
from ramp.model.contents import CallForProposals, Proposal
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from ramp.protocol.effects import Effect
from ramp.protocol.events import RequestSubmitted
from ramp.protocol.progress import Progress, RequestEnded, RoundClosed
from ramp.protocol.timing import Timing
from simulation.experiments.trials.plan import AuctionResult, Links, MarketPlan, MarketResult, ProcessUse, Submission
from simulation.market.actors import BANK, COMPOSITION, DIRECTORY, Crashed
from simulation.market.observing import Observer, is_heartbeat, unless_rule_failed
from simulation.market.random_streams import stream
from simulation.market.specs import UserSpec, configured
from simulation.market.wire import Wire
from simulation.market.world import START, World

SERVER: Final = "server"


@dataclass(frozen=True, slots=True)
class Costs:
    """Service times in microseconds of CPU.

    Attributes:
        send: an agent writes a message.
        receive: an agent reads a message.
        call_unit: a Resource Agent quotes and prices one unit.
        proposal_unit: a User Agent reads and ranks one offer or refusal.
        settle: an agent reads or writes any other message (signatures, journal, ledger).
        server: the XMPP server passes a message on.
        server_unit: the same for every unit in it.
    """

    send: Duration = 150
    receive: Duration = 250
    call_unit: Duration = 250
    proposal_unit: Duration = 60
    settle: Duration = 1_000
    server: Duration = 350
    server_unit: Duration = 20


class Stations:
    """A script (`simulation.market.observing.Script`) that only delays messages."""

    def __init__(self, plan: MarketPlan, costs: Costs | None = None) -> None:
        self._costs = costs or Costs()
        self._links = plan.links
        self._random: Random = stream(plan.seed, "links")
        self._process_of = _processes(plan)
        self._booked: dict[str, list[tuple[Instant, Instant]]] = {}  # busy spans, in order, none touching another
        self._busy: dict[str, Duration] = {}
        self._world: World | None = None

    def attach(self, world: World) -> None:
        """From now on messages take time; before, while the market is set up, they take the network's."""
        self._world = world

    def route(self, message: Message) -> Sequence[Duration] | None:
        """When the message arrives: after its sender's process, the server, and its receiver's process.

        Heartbeats take the network's time: in virtual time all agents start at once and would have them all at once.
        """
        if self._world is None or is_heartbeat(message):
            return None
        costs, units = self._costs, _units(message)
        now = at = self._world.now
        bidding = isinstance(message.content, CallForProposals | Proposal)
        at = self._serve(self._process_of[message.sender], at, costs.send if bidding else costs.settle)
        at += self._travel(message.sender)
        at = self._serve(SERVER, at, costs.server + units * costs.server_unit)
        at += self._travel(message.receiver)
        if isinstance(message.content, CallForProposals):
            work = costs.receive + units * costs.call_unit
        elif isinstance(message.content, Proposal):
            work = costs.receive + units * costs.proposal_unit
        else:
            work = costs.settle
        return (self._serve(self._process_of[message.receiver], at, work) - now,)

    def busy_s(self) -> dict[str, float]:
        """Seconds that each station has worked."""
        return {name: busy / SECOND for name, busy in sorted(self._busy.items())}

    def crash(self, name: str, effect: Effect) -> Crashed | None:
        """No party crashes."""
        return None

    def _serve(self, station: str, arrival: Instant, work: Duration) -> Instant:
        """Book the first gap of a station that is long enough; returns the end of the service."""
        assert self._world is not None
        self._busy[station] = self._busy.get(station, 0) + work
        booked = self._booked.setdefault(station, [])
        while booked and booked[0][1] <= self._world.now:
            booked.pop(0)
        start, position = arrival, 0
        while position < len(booked) and booked[position][0] < start + work:
            start = max(start, booked[position][1])
            position += 1
        end = start + work
        if position and booked[position - 1][1] == start:
            position -= 1
            booked[position] = (booked[position][0], end)
        else:
            booked.insert(position, (start, end))
        if position + 1 < len(booked) and booked[position + 1][0] == end:
            booked[position] = (booked[position][0], booked.pop(position + 1)[1])
        return end

    def _travel(self, agent: str) -> Duration:
        return 0 if self._links is None else link_delay(self._links, agent, self._random)


def link_delay(links: Links, agent: str, random: Random) -> Duration:
    """Time on the wire between an agent's host and the server's, once drawn."""
    latency = links.latency.get(links.host_of.get(agent, ""), 0)
    if latency == 0:
        return 0
    delay = latency + (int(random.expovariate(1 / links.jitter)) if links.jitter else 0)
    while links.loss and random.random() < links.loss:
        delay += links.retransmission
    return delay


def _units(message: Message) -> int:
    content = message.content
    if isinstance(content, CallForProposals):
        return len(content.request.units)
    if isinstance(content, Proposal):
        return len(content.offers) + len(content.refusals)
    return 0


def _processes(plan: MarketPlan) -> Mapping[str, str]:
    processes = {BANK: "market", DIRECTORY: "market"}
    processes.update({f"user{number}": "users" for number in range(1, plan.users + 1)})
    for position, resource in enumerate(plan.resources):
        processes[resource.name] = f"resources-{position // plan.resources_per_process + 1}"
    return processes


REGISTRATION: Final[Duration] = 1 * SECOND
"""From the start of the agents to the market's opening; all have registered by then."""

DEPOSIT: Final = 10**13
"""Of every user in minor units: money decides nothing in these experiments."""

SETTLING: Final[Duration] = 30 * MINUTE
"""How long after the last round's limit a request may still be settling."""

_LEASE_HEARTBEATS: Final = 3


def run_simulated(plan: MarketPlan, *, as_text: bool = False, profiler: cProfile.Profile | None = None) -> MarketResult:
    """Run a plan in virtual time.

    With `as_text` messages travel as XML with real signatures: slower, with the same outcomes. The profiler is on while
    requests are running.
    """
    begun = time.perf_counter()
    recorder = _Recorder()
    opening = START + REGISTRATION
    stations = Stations(plan) if plan.round_trips_cost or plan.links is not None else None
    resources = configured(plan.resources, opening - plan.age)
    users = [UserSpec(f"user{number}", DEPOSIT) for number in range(1, plan.users + 1)]
    roles = COMPOSITION.roles((each.name for each in resources), (each.name for each in users))
    timing = replace(Timing(), heartbeat=plan.heartbeat, lease=_LEASE_HEARTBEATS * plan.heartbeat)
    world = World(
        resources,
        users,
        seed=plan.seed,
        composition=replace(COMPOSITION, timing=timing),
        listen=recorder.listen,
        observer=recorder,
        script=stations,
        wire=Wire(roles, START) if as_text else None,
    )
    world.run(limit=REGISTRATION)
    if stations is not None:
        stations.attach(world)
    opened = time.perf_counter()
    cpu_begin = time.process_time()
    recorder.messages = 0
    for submission in plan.submissions:
        command = RequestSubmitted(submission.label, submission.request(opening), submission.options)
        world.command(submission.user, command, opening + submission.at)
    wanted = len(plan.submissions)
    if profiler is not None:
        profiler.enable()
    world.run(until=lambda: len(recorder.ended) == wanted, limit=_time_limit(plan))
    if profiler is not None:
        profiler.disable()
    cpu_s = time.process_time() - cpu_begin
    return MarketResult(
        plan,
        tuple(recorder.result(submission) for submission in plan.submissions),
        recorder.messages,
        cpu_s,
        time.perf_counter() - opened,
        opened - begun,
        processes=() if stations is None else tuple(ProcessUse(*each, 0.0) for each in stations.busy_s().items()),
    )


def _time_limit(plan: MarketPlan) -> Duration:
    last = max(each.at for each in plan.submissions)
    longest = max((each.options.rounds + 1) * each.options.round_time for each in plan.submissions)
    return last + longest + SETTLING + HOUR


class _Recorder(Observer):
    """Keeps what the users' parties report, and counts the messages that belong to purchases."""

    def __init__(self) -> None:
        self.ended: dict[str, RequestEnded] = {}
        self.messages = 0
        self._answered: dict[str, list[tuple[tuple[str, Duration], ...]]] = {}
        self._again: dict[str, int] = {}

    def listen(self, _: str, progress: Progress, now: Instant) -> None:
        if isinstance(progress, RoundClosed) and not progress.record.best_offer:
            self._answered.setdefault(progress.request_id, []).append(progress.answered)
            self._again[progress.request_id] = self._again.get(progress.request_id, 0) + progress.called_again
        elif isinstance(progress, RequestEnded):
            self.ended[progress.outcome.request_id] = progress

    def result(self, submission: Submission) -> AuctionResult:
        label = submission.label
        answered, again = tuple(self._answered.get(label, ())), self._again.get(label, 0)
        return AuctionResult(submission, unless_rule_failed(self.ended[label].outcome), answered, again)

    def sent(self, message: Message, delays: Sequence[Duration], now: Instant) -> None:
        self.messages += not is_heartbeat(message)
