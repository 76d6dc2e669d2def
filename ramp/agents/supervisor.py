"""Launches a market and keeps it running: the XMPP server and the processes of agents.

There is one supervisor for each state folder. It restarts a process that has ended; a process restarts its failed
agents and reports that. All child processes end with the supervisor, even if it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ramp.agents.configuration_changes import Changing, SupervisorControl
from ramp.agents.group_calls import ANSWERED, GroupCall, GroupProcess
from ramp.agents.preparing import accounts_of, grouped, new_server, only_one, prepare_keys
from ramp.agents.watches import KeyWatch, RegisterWatch, ServerWatch
from ramp.control.status import READY_LIMIT_S, STANDBY, STOP_LIMIT_S, UP, AgentStatus, ServerStatus, SwarmStatus
from ramp.errors import ConfigurationError, TransportError
from ramp.model.instant import iso
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.overlay import save_overlay, starting
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.runtime.logs import record, rotate_all
from ramp.runtime.state_folder import StateFolder
from ramp.runtime.state_versions import check_versions
from ramp.runtime.storage_errors import reason_of, storing
from ramp.servers.process import ServerProcess

RESTART_PAUSE_S: Final = 0.5
"""Pause before a process is restarted in seconds."""

LAUNCH_DEATHS_MAX: Final = 3
"""Number of ends of one process that makes the launch fail."""

WATCH_S: Final = 0.5
"""Pause between two checks of the server in seconds."""

ROTATE_LOOKS: Final = 120
"""Checks of the server between two checks of the size of logs."""

GROUP_COMMAND: tuple[str, ...] = (sys.executable, "-m", "ramp.agents.process")
"""Command of a process of agents, without the arguments of `ramp.agents.group`; tests replace it."""

FAILURES_MAX: Final = 2
"""Number of failures after which an agent that was added or restarted counts as failed."""

SETTLED: Final = frozenset({"ready", "degraded", "broken", STANDBY})
"""States in which a launch no longer waits for an agent: it is up, or it has reported why not."""

OnEvent = Callable[[dict[str, str]], None]


class Supervisor:
    """Runs a market; `on_event` is called with each event: `agent`, `event`, `detail`.

    Attributes:
        config: the present configuration; its writer starts and ends agents accordingly.
        agents: the status of each agent by its local name.
    """

    def __init__(
        self,
        config: SwarmConfig,
        state: StateFolder,
        on_event: OnEvent | None = None,
    ) -> None:
        self.config = config
        self._state = state
        self._on_event = on_event or (lambda _: None)
        self._clock = SystemClock()
        self._server: ServerProcess | None = None
        self._stopping = asyncio.Event()
        self._broken: str = ""
        self._state_shown = "starting"
        self._keys = KeyWatch(state.keys)
        self._news = asyncio.Event()
        self._failures: Counter[str] = Counter()
        self._server_watch = ServerWatch(self._addresses, config.domain, self._server_told)
        self._groups = [GroupProcess(name, agents) for name, agents in grouped(config).items()]
        self.agents = {
            name: AgentStatus(name, config.agents()[name].value, 0, "starting", "", 0, "")
            for group in self._groups
            for name in group.agents
        }

    def stop(self) -> None:
        self._stopping.set()
        self._news.set()

    async def run(self, ready: Callable[[], None] | None = None) -> None:
        """Launch the market, run it until stopped, and end it.

        `ready` is called once when each agent is up or has reported why not.

        Raises:
            RampError: the market cannot be launched.
        """
        self._state.prepare()
        check_versions(self._state)
        with only_one(self._state):
            async with contextlib.AsyncExitStack() as ending:
                overlay = starting(self.config.path, self._state)
                changing = Changing(self, overlay, self._state, self._clock)
                control = SupervisorControl(changing, self.config.domain, self._state, self._status)
                ending.push_async_callback(control.stop)
                ending.push_async_callback(self._end)
                with storing(self._state.path):
                    save_overlay(self._state, overlay)
                    self._launch_server()
                await control.start()
                for group in self._groups:
                    group.task = asyncio.create_task(self._keep_alive(group))
                watches = [self._watch_server(), self._server_watch.run()]
                if self.config.own_agents:
                    watches.append(RegisterWatch(self._state, self._give_tokens, changing.tell_bank).run())
                looks = [asyncio.create_task(each) for each in watches]
                await self._wait_ready()
                if ready is not None and not self._stopping.is_set():
                    ready()
                await self._stopping.wait()
                for look in looks:
                    look.cancel()

    # -- launching -----------------------------------------------------------------------------------------------

    def _launch_server(self) -> None:
        now = self._clock.now()
        prepare_keys(self.config, self._state, now)
        self._state.started_at(now)
        self._state.forget_registered()
        accounts = accounts_of(self.config, self._state)
        self._server = new_server(self.config, self._state)
        if self._server is not None:
            self._server.ensure_accounts(accounts)  # the server gets them at each start
            self._server.start()

    async def _wait_ready(self) -> None:
        settled, before = 0, -1
        while settled > before:  # keep waiting while further agents become ready
            if await self._until(self._is_launched):
                break
            settled, before = sum(each.state in SETTLED for each in self.agents.values()), settled
        else:
            missing = ", ".join(name for name, status in self.agents.items() if status.state not in SETTLED)
            problem = self._server_watch.problem
            why = f"the XMPP server at {self._addresses()[0][0]} {problem}; " if problem else ""
            raise TransportError(
                f"{why}not ready within {READY_LIMIT_S:g} s: {missing}; see the logs in {self._state.logs}"
            )
        if self._broken:
            raise ConfigurationError(self._broken, path=self.config.path)
        self._state_shown = UP

    def _is_launched(self) -> bool:
        stops = self._stopping.is_set() or bool(self._broken)
        return stops or all(each.state in SETTLED for each in self.agents.values())

    async def _until(self, done: Callable[[], bool]) -> bool:
        """Wait for news of agents until a condition holds, or the timeout of a launch; return whether it holds."""
        end = asyncio.get_running_loop().time() + READY_LIMIT_S
        while not done():
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), max(0.0, end - asyncio.get_running_loop().time()))
            except TimeoutError:
                return done()
        return True

    # -- processes -----------------------------------------------------------------------------------------------

    async def _keep_alive(self, group: GroupProcess) -> None:
        while not self._stopping.is_set() and group.agents:
            try:
                process = group.process = await self._spawn(group)
            except OSError as error:  # no resources for another process or its log
                for name in group.agents:
                    self._mark(name, "failed", f"cannot start its process: {reason_of(error)}")
                await self._pause()
                continue
            if self._stopping.is_set():  # stopped during the start
                process.terminate()
            for name in group.agents:
                self.agents[name] = replace(self.agents[name], pid=process.pid)
            assert process.stdout is not None
            said = ""
            async for line in process.stdout:
                said = self._heard(group, line) or said
            status = await process.wait()
            group.ended(status)
            if self._stopping.is_set() or self._broken or not group.agents:
                return
            for name in group.agents:
                self._mark(name, "failed", said or f"its process ended with status {status}")
            group.deaths += 1
            self._news.set()
            if group.deaths == LAUNCH_DEATHS_MAX and self._state_shown != UP:
                log = self._state.logs / f"{group.name}.log"
                self._break(f"the process {group.name} cannot start; see its log {log}")
                return
            await self._pause()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), RESTART_PAUSE_S)

    async def _spawn(self, group: GroupProcess) -> asyncio.subprocess.Process:
        command = [*GROUP_COMMAND, "--parent", str(os.getpid())]
        command += ["--config", str(self.config.path.absolute()), "--state-dir", str(self._state.path.absolute())]
        command += ["--agents", ",".join(group.agents)]
        if self._state_shown != UP:
            command.append("--launch")
        if self._server is not None:
            command += ["--host", self._server.host, "--port", str(self._server.port)]
            command += ["--ca-file", str(self._server.ca_file)]
        with (self._state.logs / f"{group.name}.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )

    async def _watch_server(self) -> None:
        limits = self.config.logs
        for look in itertools.count():
            await asyncio.sleep(WATCH_S)
            self._look_at_keys()
            if look % ROTATE_LOOKS == 0:
                rotate_all(self._state.logs, rotate_bytes=limits.rotate_bytes, keep=limits.keep)
            if self._server is not None and self._server.pid is None and not self._stopping.is_set():
                self._tell("server", "failed", "the XMPP server ended")
                with contextlib.suppress(TransportError, OSError):
                    self._server.start()
                    self._tell("server", "ready", "restarted")

    def _look_at_keys(self) -> None:
        for name in self._keys.look((name, self.config.address(name)) for name in tuple(self.agents)):
            if name in self.agents:
                shown = self._keys.shown(self.agents[name])
                self._tell(name, shown.state, shown.detail)

    def _heard(self, group: GroupProcess, line: bytes) -> str:
        """Handle an event of a process; return why the process ends, empty if it does not."""
        try:
            event = json.loads(line)
            name, what, detail, is_up = event["agent"], event["event"], event["detail"], event.get("is_up", False)
        except (ValueError, KeyError, TypeError):  # output of a library
            return ""
        if name and name not in self.agents:
            return ""  # a removed agent
        if what == ANSWERED:
            if event.get("act") == "restart" and not detail:
                self._mark(name, "starting", "")
            group.answered(event)
            return ""
        if what == "clock":
            self.agents[name] = replace(
                self.agents[name],
                clock_offset_ms=event.get("clock_offset_ms"),
                clock_uncertainty_ms=event.get("clock_uncertainty_ms"),
                clock_warning=detail,
            )
            return ""
        if name:
            self._mark(name, what, detail, is_up=is_up)
            return ""
        if self._state_shown != UP:
            self._break(detail)
        return str(detail)

    def _break(self, reason: str) -> None:
        self._broken = reason
        self._news.set()

    def _mark(self, name: str, state: str, detail: str, *, is_up: bool = False) -> None:
        before = self.agents[name]
        ill = ("failed", "degraded")
        again = state in ill and not is_up and (before.is_up or before.state not in ill)
        now = replace(
            before,
            state=state,
            detail=detail,
            is_up=is_up,
            restarts=before.restarts + again,
            since=iso(self._clock.now()),
        )
        if not (is_up and before.is_up):  # else it has been running all the time
            now = replace(now, clock_offset_ms=None, clock_uncertainty_ms=None, clock_warning="")
        self.agents[name] = now
        self._failures[name] += state == "failed"
        self._news.set()
        self._tell(name, state, detail)

    def _addresses(self) -> tuple[tuple[str, int], ...]:
        server = self._server
        return self.config.server.addresses if server is None else ((server.host, server.port),)

    def _server_told(self, problem: str) -> None:
        self._tell("server", "failed" if problem else "ready", problem or "answers again")

    def _tell(self, name: str, event: str, detail: str) -> None:
        record(name, event, detail or event)
        with contextlib.suppress(OSError):  # the receiver may write to a full disk
            self._on_event({"agent": name, "event": event, "detail": detail})

    async def _end(self) -> None:
        self._stopping.set()
        self._signal_all(signal.SIGTERM)
        tasks = [group.task for group in self._groups if group.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_LIMIT_S)
            if late:
                self._signal_all(signal.SIGKILL)
                await asyncio.wait(late, timeout=STOP_LIMIT_S)
        if self._server is not None:
            self._server.stop()

    def _signal_all(self, number: signal.Signals) -> None:
        for group in self._groups:
            group.signal(number)

    def _group_of(self, name: str) -> GroupProcess:
        return next(group for group in self._groups if name in group.agents)

    # -- changes -------------------------------------------------------------------------------------------------

    async def call(self, asked: GroupCall) -> tuple[list[str], list[str]]:
        """Send a call to the process of an agent; answer and errors are those of `GroupProcess.ask`."""
        return await self._group_of(asked.agent).ask(asked)

    def kill(self, name: str) -> None:
        """Kill the process of an agent; it is then restarted with all its agents."""
        self._mark(name, "starting", "")
        self._group_of(name).signal(signal.SIGKILL)

    async def give_account(self, name: str) -> None:
        """Create an agent's account on the market's own server; `RampError` if the server refuses it."""
        account = {name: self._state.passwords([name])[name]}
        if self._server is not None:
            await asyncio.to_thread(self._server.ensure_accounts, account)

    def _give_tokens(self, tokens: dict[str, AccountToken | None]) -> None:
        if self._server is not None:
            own = {*self.config.agents(), *self.config.server.accounts}  # never closed by the register
            self._server.ensure_accounts({name: token for name, token in tokens.items() if name not in own})

    async def launch(self, name: str) -> AgentStatus:
        """Start an agent in a separate process, and wait until it is up or reports why not."""
        group = GroupProcess(name, [name])
        self.agents[name] = AgentStatus(name, self.config.roles()[name].value, 0, "starting", "", 0, "")
        self._groups.append(group)
        group.task = asyncio.create_task(self._keep_alive(group))
        return await self.settled(name)

    async def settled(self, name: str) -> AgentStatus:
        """Return an agent's status once it is up or has reported why not, or after the timeout of a launch."""
        self._failures[name] = 0
        await self._until(lambda: self.agents[name].state in SETTLED or self._failures[name] >= FAILURES_MAX)
        return self.agents[name]

    async def end(self, name: str) -> None:
        """End an agent for good; stop it first if its process answers."""
        with contextlib.suppress(TransportError):
            await self.call(GroupCall("stop", name))
        group = self._group_of(name)
        group.agents.remove(name)
        del self.agents[name]
        if self._server is not None:
            with contextlib.suppress(TransportError):  # a server that does not answer closes it at its next start
                await asyncio.to_thread(self._server.ensure_accounts, {name: None})
        if not group.agents:
            self._groups.remove(group)
            group.signal(signal.SIGTERM)
            assert group.task is not None, "it was started"
            await asyncio.wait([group.task], timeout=STOP_LIMIT_S)

    # -- status --------------------------------------------------------------------------------------------------

    def _status(self) -> SwarmStatus:
        pid = self._server.pid if self._server is not None else None
        draining = {resource.name for resource in self.config.resources if resource.draining}
        host, port = next(iter(self._addresses()), ("", 0))
        return SwarmStatus(
            state=self._state_shown,
            as_of=iso(self._clock.now()),
            pid=os.getpid(),
            config=str(self.config.path.absolute()),
            server=ServerStatus(self.config.server.kind, host, port, pid, self._server_watch.problem),
            agents=tuple(
                replace(self._keys.shown(each), draining=name in draining) for name, each in self.agents.items()
            ),
            domain=self.config.domain,
        )
