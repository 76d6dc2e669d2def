"""Runs market plans over real XMPP: `python -m ramp.agents.supervise` launches the agents in processes of their own.

The machines' clocks begin at a whole second that lies before the launch, so that the market opens with machines of the
age that its plans want and every request is submitted at its second: then both ways of running a plan see the same
loads. One quotation per user before the opening opens all connections; it leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

import psutil

from ramp.client.swarm import status
from ramp.control.status import UP, AgentStatus, SwarmStatus
from ramp.errors import TransportError
from ramp.model.instant import SECOND
from ramp.model.slot import StaticTerms
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import ResourceConfig
from ramp.runtime.state_folder import StateFolder, write_private
from simulation.experiments.market.trading import DOMAIN, RunningMarket, Tally, trade_in_turn
from simulation.experiments.trials.plan import MarketPlan

DEPOSIT_CREDITS: Final = 10**11
READY_LIMIT_S: Final = 60.0
"""How long the agents of a small market may take to be ready, in seconds; `_PER_AGENT_S` more for each agent."""

STOP_LIMIT_S: Final = 40.0
_PER_AGENT_S: Final = 0.4
_POLL_S: Final = 0.05
LAUNCH_S: Final = 5.0
"""What the launch of a small market takes on two cores, in seconds; a market that takes longer opens later."""

LAUNCH_PER_AGENT_S: Final = 0.12
"""What each agent adds to that, its warm-up included."""


def run_over_xmpp(plans: Mapping[int, MarketPlan], tally: Tally) -> None:
    """Launch a market, run plans in it one after another, and end it.

    Args:
        plans: by number; of one kind, as `simulation.experiments.market.trading.sharing` finds them, without links.
        tally: gets their results.

    Raises:
        TransportError: if the market does not come up, or an agent ends in the middle.
    """
    largest = max(plans.values(), key=lambda plan: plan.users)
    agents = len(largest.resources) + largest.users
    with tempfile.TemporaryDirectory(prefix="ramp-market-") as folder:
        config = Path(folder) / "swarm.toml"
        config.write_text(swarm_toml(largest), "utf-8")
        state = StateFolder(Path(folder) / "state")
        state.prepare()
        opening = (SystemClock().now() // SECOND + round(LAUNCH_S + LAUNCH_PER_AGENT_S * agents)) * SECOND
        write_private(state.path / "started_at", str(opening - largest.age))
        begun = time.perf_counter()
        with _launched(config, state, READY_LIMIT_S + _PER_AGENT_S * agents) as up:
            market = RunningMarket(state, _processes(up), opening, time.perf_counter() - begun)
            trade_in_turn(plans, market, tally)


def swarm_toml(plan: MarketPlan) -> str:
    """The plan's market as a swarm configuration."""
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
def _launched(config: Path, state: StateFolder, limit_s: float) -> Iterator[SwarmStatus]:
    log_path = state.logs / "supervisor.log"
    command = [sys.executable, "-m", "ramp.agents.supervise", str(config), "--state-dir", str(state.path)]
    command += ["--parent", str(os.getpid())]
    with log_path.open("wb") as log:
        supervisor = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        end = time.monotonic() + limit_s
        while (found := _status(state)) is None:
            if supervisor.poll() is not None or time.monotonic() > end:
                said = log_path.read_text("utf-8", errors="replace").strip()
                raise TransportError(f"the market did not come up: {said or f'not ready within {limit_s:g} s'}")
            time.sleep(_POLL_S)
        yield found
    finally:
        supervisor.terminate()
        try:
            supervisor.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()


def _status(state: StateFolder) -> SwarmStatus | None:
    """What the supervisor answers once everybody is ready."""
    found = status(state)
    return found if found is not None and found.state == UP else None


def _processes(status: SwarmStatus) -> dict[str, psutil.Process]:
    found: dict[str, psutil.Process] = {}
    by_pid: dict[int, list[AgentStatus]] = {}
    for agent in status.agents:
        by_pid.setdefault(agent.pid, []).append(agent)
    lot = 0
    for pid, agents in by_pid.items():
        role = agents[0].role
        if role == "resource":
            lot += 1
        name = {"resource": f"resources-{lot}", "user": "users"}.get(role, "market")
        found[name] = psutil.Process(pid)
    if status.server.pid is not None:
        found["server"] = psutil.Process(status.server.pid)
    return found
