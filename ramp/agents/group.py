"""One process of agents: runs them, restarts failed ones, and reports events as JSON lines.

The supervisor runs it as `python -m ramp.agents.process`. Each line on its standard output is an event with `agent`,
`event` (`ready`, `failed`, `degraded`, `broken`, `stopped`, `clock`), `detail`, and whether the agent `is_up`; `clock`
also has numbers. The log goes to standard error. The supervisor's calls arrive on standard input (`group_calls`).

A failed agent is restarted after a pause. The pause grows with each failure and is reset after a long enough run. An
agent that cannot write its state is `degraded` and leaves the market until it can, so it makes no promises. An agent
that cannot read its state is `broken` and stays down, while the other agents of the process continue. A resource whose
plug-in or price strategy fails is also `degraded`; it stays up and refuses requests that need them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import stat
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ramp.agents.building import PartyBuilder, transport_settings
from ramp.agents.clock_watch import ComparingAgent
from ramp.agents.control import ControlChannel, KeeperControl, UserControl
from ramp.agents.group_calls import ANSWERED, GroupCall, read_call
from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import BankingAgent, KeeperAgent, ResourceAgent, UserAgent
from ramp.control.status import STANDBY
from ramp.errors import ConfigurationError, EffectFailed, MembershipRevoked, PluginError, StateDamaged, TransportError
from ramp.model.instant import MILLISECOND, Instant
from ramp.model.money import credits_text
from ramp.protocol.clock_comparison import offset_text
from ramp.protocol.progress import ClockCompared
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.slots.kept_participants import FINAL
from ramp.protocol.transition_tables import ParticipantState
from ramp.protocol.user.party import UserParty
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.overlay import running_config
from ramp.runtime.logs import as_json_lines, keep_events, log_to_stderr
from ramp.runtime.state_folder import StateFolder
from ramp.runtime.storage_errors import STORAGE_ERRORS, is_storage_failure, reason_of
from ramp.servers.parent import end_with_parent
from ramp.xmpp.link import TransportSettings

RESTART_FIRST_S = 0.5
"""First pause before a restart in seconds; it doubles up to `RESTART_LONGEST_S`."""

RESTART_LONGEST_S = 15.0

events_fd = 1  # descriptor that events are written to

DETAIL_MAX = 5_000
"""Characters of an event's detail: the supervisor reads lines of at most 64 KiB, and a plug-in may say anything."""

STEADY_S = 60.0
"""Run time in seconds that resets the pause of an agent."""

STOP_LIMIT_S = 5.0
"""Timeout of an agent's stop in seconds."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Life:
    """State of one agent in its process.

    Attributes:
        agent: the agent while it runs, else None.
        ending: set to end the agent; it starts again unless it is `gone`.
        ended: set while the agent does not run.
        gone: whether the agent must not start again.
    """

    agent: PartyAgent | None = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    gone: bool = False


class Group:
    """The agents of one process, with local names in starting order; at a launch, one never to be built ends it."""

    def __init__(self, building: PartyBuilder, names: list[str], *, launch: bool) -> None:
        self._building = building
        self._launch = launch
        self._lives = {name: _Life() for name in names}
        self._stopping = asyncio.Event()
        self._starting = asyncio.Lock()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Run until stopped; `ConfigurationError` if an agent can never be built at a launch."""
        async with asyncio.TaskGroup() as tasks:
            for name in self._lives:
                tasks.create_task(self._keep_alive(name), name=name)

    # -- calls of the supervisor ---------------------------------------------------------------------------------

    async def listen(self, calls: asyncio.StreamReader) -> None:
        """Answer the supervisor's calls until it closes the input."""
        while line := await calls.readline():
            call = read_call(line)
            still_open: list[str] = []
            told: list[str] = []
            problem = ""
            try:
                still_open, told = await self._do(call)
            except Exception as error:  # a failure of one agent must not affect the others
                _log.error("%s of %s failed", call.act, call.agent, exc_info=error)
                problem = str(error) or type(error).__name__
            _emit(call.agent, ANSWERED, problem, call=call.call, act=call.act, open=still_open, told=told)

    async def _do(self, call: GroupCall) -> tuple[list[str], list[str]]:
        life = self._lives[call.agent]
        if call.act == "standing":
            if life.agent is None:
                raise TransportError(f"{call.agent} is not running")
            return standing_of(life.agent, call.account, life.agent.now())
        if call.act == "stop":
            life.gone = True
        else:
            self._building = self._building.anew()
        if call.act == "update":
            if life.agent is not None:
                await self._building.update(life.agent, call.agent)
        else:
            life.ending.set()
            await life.ended.wait()
        return [], []

    # -- running an agent ----------------------------------------------------------------------------------------

    async def _keep_alive(self, name: str) -> None:
        life = self._lives[name]
        pause = RESTART_FIRST_S
        was_up = False
        while not self._stopping.is_set() and not life.gone:
            life.ending.clear()
            life.ended.clear()
            began = time.monotonic()
            agent: PartyAgent | None = None
            stays_down = False
            try:
                if not await self._turn(name, life):
                    continue
                agent = await self._start(name)
                life.agent = agent
                if isinstance(agent, ResourceAgent):
                    await _first_of(agent.guests_opened(), self._stopping.wait())
                was_up = True
                await self._live(name, agent, life)
            except Exception as error:  # restart the agent after any error, unless that is useless
                if self._launch and isinstance(error, ConfigurationError) and not (was_up or is_storage_failure(error)):
                    raise
                stays_down = isinstance(error, StateDamaged | MembershipRevoked)
                stays_down |= isinstance(error, PluginError) and not error.transient
                _tell_failure(name, error, stays_down=stays_down)
            finally:
                life.agent = None
                await end_agent(agent)
                life.ended.set()
            if stays_down:
                await self._told_to_end(life)
            if not self._stopping.is_set() and not life.ending.is_set():
                pause = RESTART_FIRST_S if time.monotonic() - began > STEADY_S else pause
                await self._told_to_end(life, pause)
                pause = min(2 * pause, RESTART_LONGEST_S)
        _emit(name, "stopped", "")

    async def _turn(self, name: str, life: _Life) -> bool:
        """Wait until a standby bank becomes active; False if it must end first. Other agents do not wait."""
        lease = self._building.bank_lease(name)
        if lease is None:
            return True
        told = False
        while not self._stopping.is_set() and not life.ending.is_set():
            if await asyncio.to_thread(lease.take):
                return True
            if not told:
                _emit(name, STANDBY, f"{lease.active} is the bank")
                told = True
            await self._told_to_end(life, lease.pause_s)
        return False

    async def _told_to_end(self, life: _Life, limit_s: float | None = None) -> None:
        """Wait until this process or the agent must end, or until the timeout in seconds."""
        await _first_of(self._stopping.wait(), life.ending.wait(), limit_s=limit_s)

    async def _start(self, name: str) -> PartyAgent:
        async with self._starting:  # in order: bank and directory start before the agents that need them
            agent = self._building.build(name)
            try:
                await agent.start()
            except BaseException:
                await end_agent(agent)
                raise
            return agent

    async def _live(self, name: str, agent: PartyAgent, life: _Life) -> None:
        control = self._control(name, agent)
        if isinstance(agent, ComparingAgent):
            agent.told = partial(_emit_clock, name)
        if control is not None:
            await control.start()
        tell = partial(_tell_standing, name, agent)
        if isinstance(agent, ResourceAgent):
            agent.on_troubles = tell
        tell()
        try:
            await _first_of(agent.wait_finished(), self._told_to_end(life))
            if isinstance(agent, ResourceAgent) and agent.is_connected:
                await agent.leave()
        finally:
            if isinstance(agent, ResourceAgent):
                agent.on_troubles = lambda: None
            if control is not None:
                await control.stop()

    def _control(self, name: str, agent: PartyAgent) -> ControlChannel | None:
        state = self._building.state
        if isinstance(agent, UserAgent):
            return UserControl(agent, state.socket(name), state)
        return KeeperControl(agent, state.socket(name), state) if isinstance(agent, KeeperAgent) else None


async def _first_of(*waits: Coroutine[object, None, object], limit_s: float | None = None) -> None:
    """Wait until one of several has ended, raise its exception, and cancel the others."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        ended, _ = await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            await task
    finally:
        for task in tasks:
            task.cancel()


def _tell_standing(name: str, agent: PartyAgent) -> None:
    """Report that an agent is up, and the problems of its guests."""
    if isinstance(agent, ResourceAgent) and agent.troubles:
        reasons = "; ".join(f"{guest}: {reason}" for guest, reason in sorted(agent.troubles.items()))
        _emit(name, "degraded", reasons, is_up=True)
        return
    party = agent.host.party
    _emit(name, "ready", party.source if isinstance(party, ResourceParty) else "", is_up=True)


def _tell_failure(name: str, error: Exception, *, stays_down: bool) -> None:
    """Report why an agent has ended; a full disk needs no traceback."""
    if stays_down:
        _log.error("agent %s stays down: %s", name, error)
        _emit(name, "broken", str(error))
    elif isinstance(error, EffectFailed) or is_storage_failure(error):
        _log.error("agent %s is down until its state can be written: %s", name, error)
        _emit(name, "degraded", error.reason if isinstance(error, EffectFailed) else reason_of(error))
    else:
        _log.error("agent %s failed", name, exc_info=error)
        _emit(name, "failed", f"{type(error).__name__}: {error}")


async def end_agent(agent: PartyAgent | None) -> None:
    """Stop an agent despite any error of its connection, and close its journal or ledger."""
    if agent is None:
        return
    with contextlib.suppress(Exception):
        await asyncio.wait_for(agent.stop(), STOP_LIMIT_S)
    books = agent.host.ports.ledger
    ledger = books.ledger if books is not None else None
    for close in (getattr(agent.host.ports.journal, "close", None), getattr(ledger, "close", None)):
        if close is not None:
            with contextlib.suppress(*STORAGE_ERRORS):  # committed records stay
                close()


def _emit(agent: str, event: str, detail: str, **further: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        said = {"agent": agent, "event": event, "detail": detail[:DETAIL_MAX], **further}
        os.write(events_fd, json.dumps(said).encode() + b"\n")


def _emit_clock(agent: str, compared: ClockCompared) -> None:
    _emit(
        agent,
        "clock",
        offset_text(compared) if compared.wrong else "",
        clock_offset_ms=round(compared.certain / MILLISECOND, 3),
        clock_uncertainty_ms=round(compared.uncertainty / MILLISECOND, 3),
    )


def standing_of(agent: PartyAgent, account: str, now: Instant) -> tuple[list[str], list[str]]:
    """Return an agent's open obligations, or the bank's state of an account, as texts for people."""
    if isinstance(agent, BankingAgent):
        return _account(agent, account)
    party = agent.host.party
    if isinstance(party, UserParty):
        return _bought(party, now), []
    if isinstance(party, ResourceParty):
        parts = party.participants.values()
        kept = sum(each.state is ParticipantState.SOLD and each.size[1] > now for each in parts)
        kept += sum(each.state not in FINAL for each in parts)
        return _counted(kept, "slot sold or held that is not over", "slots sold or held that are not over"), []
    return [], []


def _bought(party: UserParty, now: Instant) -> list[str]:
    states = {each: party.agreement_state(each) for each in party.agreements}
    going_on = sum(purchase.outcome is None for purchase in party.purchases.values())
    kept = sum(state == "active" and party.changes.history.state(each).until > now for each, state in states.items())
    between = sum(state in ("settling", "cancelling") for state in states.values())
    return [
        *_counted(going_on, "open request", "open requests"),
        *_counted(kept, "slot bought that is not over", "slots bought that are not over"),
        *_counted(between, "purchase or refund under way", "purchases and refunds under way"),
    ]


def _counted(number: int, one: str, many: str) -> list[str]:
    return [f"{number} {one if number == 1 else many}"] if number else []


def _account(bank: BankingAgent, account: str) -> tuple[list[str], list[str]]:
    books = bank.host.ports.ledger
    assert books is not None, "a bank has a ledger"
    for balance in books.ledger.balances():
        if balance.account.account_id == account:
            found = [f"{credits_text(balance.reserved)} credits set aside"] if balance.reserved else []
            found += [f"{credits_text(-balance.posted)} credits owed to the bank"] if balance.posted < 0 else []
            return found, [f"its account keeps {credits_text(balance.posted)} credits"] if balance.posted > 0 else []
    return [], []


def main(arguments: list[str] | None = None) -> int:
    """Run a group of agents until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m ramp.agents.process", description=main.__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ca-file", type=Path)
    parser.add_argument("--agents", required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--launch", action="store_true")
    options = parser.parse_args(arguments)
    log_to_stderr(logging.WARNING)
    end_with_parent(options.parent)
    exit_code = 0
    state = StateFolder(options.state_dir)
    try:
        config = running_config(options.config, state)
        settings = transport_settings(config, options.host, options.port, options.ca_file)
        asyncio.run(run_agents(config, state, settings, options.agents.split(","), launch=options.launch))
    except* ConfigurationError as errors:
        _emit("", "broken", "; ".join(str(error) for error in errors.exceptions))
        exit_code = 2
    return exit_code


async def run_agents(
    config: SwarmConfig, state: StateFolder, settings: TransportSettings, names: list[str], *, launch: bool = True
) -> None:
    """Run agents in this process until SIGTERM or SIGINT, in the order of `names`.

    Raises:
        ConfigurationError: an agent can never be built at a launch.
    """
    building = PartyBuilder(config, state, settings, SystemClock())
    limits = config.logs
    end_events = keep_events(state.events / f"{names[0]}.jsonl", rotate_bytes=limits.rotate_bytes, keep=limits.keep)
    if limits.format == "json":
        as_json_lines()
    group = Group(building, names, launch=launch)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, group.stop)
    calls = asyncio.StreamReader()
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):  # of a supervisor, which may ask
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(calls), sys.stdin)
    listening = loop.create_task(group.listen(calls))
    try:
        await group.run()
    finally:
        listening.cancel()
        end_events()


if __name__ == "__main__":
    sys.exit(main())
