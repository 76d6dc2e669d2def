"""Runs a market plan in virtual time: the same parties and hosts as the agents run, in one process, repeatable."""

from __future__ import annotations

import cProfile
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ramp.model.acl import Message
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from ramp.protocol.events import RequestSubmitted
from ramp.protocol.progress import Progress, RequestEnded, RoundClosed
from ramp.protocol.timing import Timing
from simulation.experiments.trials.plan import AuctionResult, MarketPlan, MarketResult, ProcessUse, Submission
from simulation.experiments.trials.stations import Stations
from simulation.market.actors import COMPOSITION
from simulation.market.observing import Observer, is_heartbeat, unless_rule_failed
from simulation.market.specs import UserSpec, configured
from simulation.market.wire import Wire
from simulation.market.world import START, World

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
