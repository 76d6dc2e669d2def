"""Submits a plan's requests to a running market over XMPP and follows them to their ends.

Plans that differ in nothing but their requests and the number of users follow one another in one market: what a plan
has bought is given back before the next one opens, so that each finds the platform at rest and nobody's load changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import psutil

from ramp.client import dialogues
from ramp.client.access import SocketLine, refused
from ramp.client.dialogues import Dialogue
from ramp.client.market import ask
from ramp.control.codec import decode_event, encode_event
from ramp.control.events import Refused
from ramp.control.requests import Submit
from ramp.errors import MarketRefused, TransportError
from ramp.model.instant import SECOND, Duration, Instant
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.progress import RequestEnded, RoundClosed
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder
from simulation.experiments.measuring import Progress
from simulation.experiments.trials.plan import AuctionResult, MarketPlan, MarketResult, ProcessUse, Submission
from simulation.market.observing import unless_rule_failed

DOMAIN: Final = "localhost"
_MARGIN_S: Final = 0.5
"""From the end of all preparations to the opening at least."""

LISTED_LIMIT_S: Final = 60.0
"""How long resources may take to register, in seconds."""

_POLL_S: Final = 0.05


@dataclass(slots=True)
class Tally:
    """What is done of an experiment's plans.

    Attributes:
        requests: how many requests all plans have together.
        on_progress: told how many of them have ended.
        results: of the plans that are done, by number.
    """

    requests: int
    on_progress: Progress | None = None
    results: dict[int, MarketResult] = field(default_factory=dict)
    _ended: int = 0

    def begun(self) -> None:
        """Nothing is done yet."""
        self._tell()

    def request_ended(self) -> None:
        """One more request has ended."""
        self._ended += 1
        self._tell()

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self._ended, self.requests)


@dataclass(frozen=True, slots=True)
class RunningMarket:
    """A market whose agents are all ready.

    Attributes:
        state: its state folder.
        processes: its processes by what runs in them.
        opening: when its machines have the age that its plans want.
        launch_s: wall time of its launch.
        domains: XMPP domains of its agents.
    """

    state: StateFolder
    processes: Mapping[str, psutil.Process]
    opening: Instant
    launch_s: float
    domains: Sequence[str] = (DOMAIN,)


@dataclass(frozen=True, slots=True)
class _Answer:
    ended: RequestEnded
    rounds: Sequence[RoundClosed]


def sharing(plans: Sequence[MarketPlan]) -> list[list[int]]:
    """Return the numbers of the plans that can follow one another in one market, in their order.

    Plans share a market where the resources, their ages and their setup are the same.
    """
    markets: list[tuple[MarketPlan, list[int]]] = []
    for number, plan in enumerate(plans):
        bare = replace(plan, label="", users=0, submissions=(), seed=0)
        for other, numbers in markets:
            if other == bare:
                numbers.append(number)
                break
        else:
            markets.append((bare, [number]))
    return [numbers for _, numbers in markets]


def trade_in_turn(plans: Mapping[int, MarketPlan], market: RunningMarket, tally: Tally) -> None:
    """Run plans by number, one after another, in a running market.

    Raises:
        TransportError: if a request cannot be followed to its end.
    """
    clock = SystemClock()
    wait_listed(next(iter(plans.values())), market)
    warm_up(max(plans.values(), key=lambda plan: plan.users), market)
    last = len(plans) - 1
    for position, (number, plan) in enumerate(plans.items()):
        late = max(0, clock.now() + round(_MARGIN_S * SECOND) - market.opening)
        late = -(-late // SECOND) * SECOND  # whole seconds, as times are in requests
        result = tally.results[number] = trade(plan, market, late, f"plan{number}", tally)
        if position < last:
            give_back(result, market)


def wait_listed(plan: MarketPlan, market: RunningMarket) -> None:
    """Wait until the directory knows every resource; the first message from another host takes its time.

    Raises:
        TransportError: if some do not register.
    """
    wanted = {each.name for each in plan.resources}
    end = time.monotonic() + LISTED_LIMIT_S
    asked = market.state.socket(plan.submissions[0].user)
    while True:
        try:
            listed = ask(asked, dialogues.resources(""))
        except MarketRefused:  # the directory does not answer yet
            listed = ()
        missing = wanted - {each.name.partition("@")[0] for each in listed}
        if not missing:
            return
        if time.monotonic() > end:
            raise TransportError(f"not registered within {LISTED_LIMIT_S:g} s: {', '.join(sorted(missing))}")
        time.sleep(_POLL_S)


def warm_up(plan: MarketPlan, market: RunningMarket) -> None:
    """Open all connections by one quotation a user of the plan, which has the most users."""
    wishes = plan.submissions[0].wishes[:1]
    for user in sorted({submission.user for submission in plan.submissions}):
        first = Submission("warm-up", user, plan.submissions[0].at, wishes)
        document = write_request(first.request(market.opening))
        ask(market.state.socket(user), _quoted(document))


def _quoted(document: str) -> Dialogue[None]:
    yield Submit(document, options=AuctionOptions(rounds=1, quote_only=True))


def give_back(result: MarketResult, market: RunningMarket) -> None:
    """Cancel everything that a plan has bought.

    Raises:
        TransportError: if a unit is not taken back.
    """
    for auction in result.auctions:
        bought = [unit.agreement_id for unit in auction.outcome.units if unit.agreement_id]
        if not bought:
            continue
        for agreement_id in bought:
            for cancelled in ask(market.state.socket(auction.submission.user), dialogues.cancel(agreement_id, "")):
                if not cancelled.done:
                    raise TransportError(f"{agreement_id} was not taken back: {cancelled}")


def trade(plan: MarketPlan, market: RunningMarket, late: Duration, mark: str, tally: Tally) -> MarketResult:
    """Submit a plan's requests and follow them to their ends.

    Args:
        plan: the plan.
        market: the market.
        late: how long after the market's opening the plan's times begin.
        mark: set before the requests' ids, so that those of several plans differ.
        tally: counts every request that has ended.

    Raises:
        TransportError: if a request cannot be followed to its end.
    """
    opening = market.opening + late
    by_user: dict[str, list[tuple[Submission, str]]] = {}
    for each in plan.submissions:
        by_user.setdefault(each.user, []).append((each, write_request(each.request(opening))))
    before, machine_before = _use(market.processes), _machine_cpu_s()
    begun = time.perf_counter()
    answers = asyncio.run(_submit_all(by_user.values(), market.state, opening, mark, tally))
    wall_s = (SystemClock().now() - opening) / SECOND
    after, machine_s = _use(market.processes), _machine_cpu_s() - machine_before
    use = [
        ProcessUse(name, round(after[name].cpu_s - before[name].cpu_s, 3), after[name].memory_mb)
        for name in market.processes
        if name in after and name in before
    ]
    results = tuple(_result(each, answers[each.label], market.domains) for each in plan.submissions)
    cpu_s = sum(each.cpu_s for each in use)
    foreign = max(0.0, machine_s - cpu_s) / (time.perf_counter() - begun)
    return MarketResult(plan, results, 0, cpu_s, wall_s, market.launch_s, tuple(use), round(foreign, 2))


async def _submit_all(
    users: Iterable[Iterable[tuple[Submission, str]]], state: StateFolder, opening: Instant, mark: str, tally: Tally
) -> dict[str, _Answer]:
    """Submit the requests of several users; each of one user's at its time, but never before the last one's end."""
    answers: dict[str, _Answer] = {}

    async def submit_in_turn(requests: Iterable[tuple[Submission, str]]) -> None:
        for submission, document in requests:
            label = submission.label
            try:
                answers[label] = await _submit(submission, state, opening, f"{mark}-{label}", document)
            except Exception as error:
                raise TransportError(f"{label} could not be followed to its end: {error}") from error
            tally.request_ended()

    await asyncio.gather(*map(submit_in_turn, users))
    return answers


async def _submit(
    submission: Submission, state: StateFolder, opening: Instant, request_id: str, document: str
) -> _Answer:
    rounds: list[RoundClosed] = []
    async with await SocketLine.open(state.socket(submission.user)) as line:
        await asyncio.sleep(max(0.0, (opening + submission.at - SystemClock().now()) / SECOND))
        async for event in line.events(Submit(document, request_id, submission.options)):
            if isinstance(event, RoundClosed) and not event.record.best_offer:
                rounds.append(event)
            elif isinstance(event, Refused):
                raise refused(event)
    assert isinstance(event, RequestEnded), "a submission ends with its request's end"
    return _Answer(event, rounds)


def _result(submission: Submission, answer: _Answer, domains: Sequence[str]) -> AuctionResult:
    answered = tuple(
        tuple((name.partition("@")[0], duration) for name, duration in event.answered) for event in answer.rounds
    )
    outcome = with_local_names(unless_rule_failed(answer.ended.outcome), domains)
    return AuctionResult(submission, outcome, answered, sum(event.called_again for event in answer.rounds))


def with_local_names(outcome: RequestOutcome, domains: Sequence[str] = (DOMAIN,)) -> RequestOutcome:
    """An outcome with local names in place of XMPP addresses."""
    text = encode_event(RequestEnded(outcome)).decode()
    for domain in domains:
        text = text.replace(f"@{domain}", "")
    ended = decode_event(text.encode())
    assert isinstance(ended, RequestEnded)
    return ended.outcome


# -- what processes use ----------------------------------------------------------------------------------------------


def _use(processes: Mapping[str, psutil.Process]) -> dict[str, ProcessUse]:
    """CPU time so far and memory now, children included (the embedded server has some)."""
    result: dict[str, ProcessUse] = {}
    for name, process in processes.items():
        cpu_s, memory = 0.0, 0
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                cpu_s += times.user + times.system
                memory += each.memory_info().rss
        result[name] = ProcessUse(name, cpu_s, round(memory / 2**20, 1))
    return result


def _machine_cpu_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times)) - float(times.idle) - float(getattr(times, "iowait", 0.0))
