"""Runs market plans over real XMPP: a supervisor launches the agents in processes of their own.

The machines' clocks begin at a whole second that lies before the launch, so that the market opens with machines of the
age that its plans want and every request is submitted at its second: then both ways of running a plan see the same
loads. One quotation per user before the opening opens all connections; it leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

import psutil

from ramp.client.swarm import start_detached, stop
from ramp.control.status import AgentStatus, SwarmStatus
from ramp.model.instant import SECOND
from ramp.model.slot import StaticTerms
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import ResourceConfig
from ramp.runtime.state_folder import StateFolder, write_private
from simulation.experiments.market.trading import DOMAIN, RunningMarket, Tally, trade_in_turn
from simulation.experiments.trials.plan import MarketPlan

DEPOSIT_CREDITS: Final = 10**11
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
        launched = start_detached(config, state, parent=os.getpid())
        try:
            market = RunningMarket(state, _processes(launched), opening, time.perf_counter() - begun)
            trade_in_turn(plans, market, tally)
        finally:
            stop(state)


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


def _processes(launched: SwarmStatus) -> dict[str, psutil.Process]:
    found: dict[str, psutil.Process] = {}
    by_pid: dict[int, list[AgentStatus]] = {}
    for agent in launched.agents:
        by_pid.setdefault(agent.pid, []).append(agent)
    lot = 0
    for pid, agents in by_pid.items():
        role = agents[0].role
        if role == "resource":
            lot += 1
        name = {"resource": f"resources-{lot}", "user": "users"}.get(role, "market")
        found[name] = psutil.Process(pid)
    if launched.server.pid is not None:
        found["server"] = psutil.Process(launched.server.pid)
    return found
