"""Runs a market plan over real XMPP: `python -m ramp.agents.supervise` launches the agents in processes of their own.

The machines' clocks begin at a whole second that lies before the launch, so that the market opens with machines of the
age that the plan wants and every request is submitted at its second: then both ways of running a plan see the same
loads. One quotation per user before the opening opens all connections; it leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import cattrs
import psutil

from ramp.errors import TransportError
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.slot import StaticTerms
from ramp.protocol.outcome import RequestOutcome
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.config import ResourceConfig
from ramp.runtime.control_client import ControlClient
from ramp.runtime.state_folder import StateFolder, write_private
from simulation.experiments.market_plan import AuctionResult, MarketPlan, MarketResult, ProcessUse, Submission

DOMAIN: Final = "localhost"
DEPOSIT_CREDITS: Final = 10**11
READY_LIMIT_S: Final = 60.0
"""How long the agents of a small market may take to be ready, in seconds; `_PER_AGENT_S` more for each agent."""

STOP_LIMIT_S: Final = 40.0
_PER_AGENT_S: Final = 0.4
_POLL_S: Final = 0.05
_OPENING_MARGIN_S: Final = 2.0
"""From the end of the warm-up to the opening at least."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the control channel said about a submission."""

    ended: Mapping[str, Any]
    rounds: Sequence[Mapping[str, Any]]


def run_over_xmpp(plan: MarketPlan) -> MarketResult:
    """Launch the plan's market, submit its requests at their times, and end the market.

    Args:
        plan: the plan; its links are not heeded, the agents are all on this machine.

    Raises:
        TransportError: if the market does not come up, or an agent ends in the middle.
    """
    with tempfile.TemporaryDirectory(prefix="ramp-market-") as folder:
        config = Path(folder) / "swarm.toml"
        config.write_text(swarm_toml(plan), "utf-8")
        state = StateFolder(Path(folder) / "state")
        state.prepare()
        clock = SystemClock()
        allowance = 6 + round(_PER_AGENT_S * (len(plan.resources) + plan.users))
        opening = (clock.now() // SECOND + allowance) * SECOND
        write_private(state.path / "started_at", str(opening - plan.age))
        begun = time.perf_counter()
        with _launched(config, state, READY_LIMIT_S + _PER_AGENT_S * (len(plan.resources) + plan.users)) as status:
            launch_s = time.perf_counter() - begun
            warm_up(plan, state, opening)
            late = max(0, clock.now() + round(_OPENING_MARGIN_S * SECOND) - opening)
            late = -(-late // SECOND) * SECOND  # whole seconds, as times are in requests
            return trade(plan, state, _processes(status), opening + late, launch_s, late, (DOMAIN,))


def swarm_toml(plan: MarketPlan) -> str:
    """The plan's market as a swarm configuration.

    Args:
        plan: the plan.
    """
    lines = ["[market]", f'domain = "{DOMAIN}"', f"resources_per_process = {plan.resources_per_process}"]
    lines += ["[server]", f'kind = "{plan.server}"', "[timing]"]
    lines += [f"heartbeat_s = {plan.heartbeat / SECOND:g}", f"lease_s = {3 * plan.heartbeat / SECOND:g}"]
    for number in range(1, plan.users + 1):
        lines += ["[[users]]", f'name = "user{number}"', f"deposit = {DEPOSIT_CREDITS}"]
    for resource in plan.resources:
        lines += _resource_toml(resource)
    return "\n".join(lines) + "\n"


def _resource_toml(resource: ResourceConfig) -> list[str]:
    lines = [f"[machines.{resource.name}]"]
    for entry in fields(StaticTerms):
        value = getattr(resource.terms, entry.name)
        if value not in (None, False):
            lines.append(f"{entry.name} = {json.dumps(value)}")
    lines += ["[[resources]]", f'name = "{resource.name}"', f'machine = "{resource.name}"']
    lines += [f'plugin = "{resource.plugin}"', f'pricing = "{resource.pricing}"']
    lines += [f"start_price = {resource.prices.start_price}", f"minimum_price = {resource.prices.minimum_price}"]
    lines.append(f"rounds_expected = {resource.prices.rounds_expected}")
    options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in resource.options.items())
    lines.append(f"options = {{ {options} }}")
    return lines


# -- the market's life -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _launched(config: Path, state: StateFolder, limit_s: float) -> Iterator[dict[str, Any]]:
    """A running market and what its supervisor says about it; ended afterwards."""
    log_path = state.logs / "supervisor.log"
    command = [sys.executable, "-m", "ramp.agents.supervise", str(config), "--state-dir", str(state.path)]
    with log_path.open("wb") as log:
        supervisor = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + limit_s
        while (status := _status(state)) is None:
            if supervisor.poll() is not None or time.monotonic() > end:
                said = log_path.read_text("utf-8", errors="replace").strip()
                raise TransportError(f"the market did not come up: {said or f'not ready within {limit_s:g} s'}")
            time.sleep(_POLL_S)
        yield status
    finally:
        supervisor.terminate()
        try:
            supervisor.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()


def _status(state: StateFolder) -> dict[str, Any] | None:
    """What the supervisor writes once everybody is ready."""
    try:
        found: dict[str, Any] = json.loads((state.run / "swarm.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if found["state"] == "up" else None


# -- requests --------------------------------------------------------------------------------------------------------


def warm_up(plan: MarketPlan, state: StateFolder, opening: Instant) -> None:
    """Open all connections by one quotation a user.

    Args:
        plan: the plan.
        state: the market's state folder.
        opening: when it will open.
    """
    wishes = plan.submissions[0].wishes[:1]
    for user in sorted({submission.user for submission in plan.submissions}):
        first = Submission("warm-up", user, plan.submissions[0].at, wishes)
        with ControlClient(state.socket(user)) as client:
            document = write_request(first.request(opening))
            client.answer({"verb": "submit", "document": document, "options": {"rounds": 1, "quote_only": True}})


def trade(
    plan: MarketPlan,
    state: StateFolder,
    processes: Mapping[str, psutil.Process],
    opening: Instant,
    launch_s: float,
    late: Duration,
    domains: Sequence[str],
) -> MarketResult:
    """Submit a plan's requests to a running market and follow them to their ends.

    Args:
        plan: the plan.
        state: the market's state folder.
        processes: the market's processes by name.
        opening: when the plan's times begin.
        launch_s: wall time of the launch, for the result.
        late: how much later than planned the market opens, for the result.
        domains: XMPP domains of the agents.

    Raises:
        TransportError: if a request cannot be followed to its end.
    """
    answers: dict[str, _Answer | Exception] = {}
    documents = {each.label: write_request(each.request(opening)) for each in plan.submissions}
    before, machine_before = _use(processes), _machine_cpu_s()
    threads = [
        threading.Thread(target=_submit, args=(each, state, opening, documents[each.label], answers), daemon=True)
        for each in plan.submissions
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = (SystemClock().now() - opening) / SECOND
    after, machine_s = _use(processes), _machine_cpu_s() - machine_before
    for label, answer in answers.items():
        if isinstance(answer, Exception):
            raise TransportError(f"{label} could not be followed to its end: {answer}") from answer
        if answer.ended["event"] == "error":
            raise TransportError(f"{label} was not taken: {answer.ended['reason']}")
    use = [
        ProcessUse(name, round(after[name].cpu_s - before[name].cpu_s, 3), after[name].memory_mb)
        for name in processes
        if name in after and name in before
    ]
    results = tuple(_result(each, answers[each.label], domains) for each in plan.submissions)
    cpu_s = sum(each.cpu_s for each in use)
    foreign = max(0.0, machine_s - cpu_s) / (time.perf_counter() - begun)
    return MarketResult(plan, results, 0, cpu_s, wall_s, launch_s, late / SECOND, tuple(use), round(foreign, 2))


def _submit(
    submission: Submission,
    state: StateFolder,
    opening: Instant,
    document: str,
    answers: dict[str, _Answer | Exception],
) -> None:
    """Submit one request at its time and follow it to its end; runs in a thread of its own."""
    options = submission.options
    command = {
        "verb": "submit",
        "document": document,
        "request_id": submission.label,
        "options": {
            "rounds": options.rounds,
            "round_time_s": options.round_time / SECOND,
            "prefer": str(options.preference),
            "approve": str(options.approval),
            "quote_only": options.quote_only,
        },
    }
    rounds: list[Mapping[str, Any]] = []
    try:
        with ControlClient(state.socket(submission.user)) as client:
            time.sleep(max(0.0, (opening + submission.at - SystemClock().now()) / SECOND))
            for event in client.events(command):
                if event["event"] == "round_closed" and not event["record"]["best_offer"]:
                    rounds.append(event)
            answers[submission.label] = _Answer(event, rounds)
    except Exception as error:  # told by the thread that waits for this one
        answers[submission.label] = error


def _result(submission: Submission, answer: _Answer | Exception, domains: Sequence[str]) -> AuctionResult:
    assert isinstance(answer, _Answer)
    outcome = outcome_from_plain(answer.ended["outcome"], domains)
    answered = tuple(
        tuple((name.partition("@")[0], duration) for name, duration in event["answered"]) for event in answer.rounds
    )
    return AuctionResult(submission, outcome, answered)


def outcome_from_plain(plain: Mapping[str, Any], domains: Sequence[str] = (DOMAIN,)) -> RequestOutcome:
    """An outcome as the control channel tells it, with local names in place of XMPP addresses.

    Args:
        plain: its JSON object.
        domains: of the addresses.
    """
    text = json.dumps(plain)
    for domain in domains:
        text = text.replace(f"@{domain}", "")
    return cattrs.structure(json.loads(text), RequestOutcome)


# -- what processes use ----------------------------------------------------------------------------------------------


def _processes(status: Mapping[str, Any]) -> dict[str, psutil.Process]:
    """The market's processes by what runs in them."""
    found: dict[str, psutil.Process] = {}
    by_pid: dict[int, list[Mapping[str, Any]]] = {}
    for agent in status["agents"]:
        by_pid.setdefault(agent["pid"], []).append(agent)
    lot = 0
    for pid, agents in by_pid.items():
        role = agents[0]["role"]
        if role == "resource":
            lot += 1
        name = {"resource": f"resources-{lot}", "user": "users"}.get(role, "market")
        found[name] = psutil.Process(pid)
    if status["server"]["pid"] is not None:
        found["server"] = psutil.Process(status["server"]["pid"])
    return found


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
    """CPU time that the whole machine has spent so far."""
    times = psutil.cpu_times()
    return float(sum(times)) - float(times.idle) - float(getattr(times, "iowait", 0.0))
