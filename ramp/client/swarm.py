"""Launches a market in the background, and stops it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ramp.client.access import status
from ramp.control.status import READY_LIMIT_S, STOP_LIMIT_S, UP, SwarmStatus
from ramp.errors import ConfigurationError, TransportError
from ramp.runtime.state_folder import StateFolder
from ramp.runtime.state_versions import check_versions
from ramp.runtime.storage_errors import check_room

WAITING: Final = "waiting"

LOOK_S: Final = 0.05
"""Pause between two looks at a launch, in seconds."""

LOOK_PER_AGENT_S: Final = 0.001
"""Further pause for each agent, in seconds, because a long status takes the supervisor's time during the launch."""

WAITING_TOLD_S: Final = 10.0
"""Interval in seconds between progress lines of a launch without progress."""

ENDING_LIMIT_S: Final = 3 * STOP_LIMIT_S + 30
"""How long a market may take to end, in seconds: its supervisor gives agents, those that hang, and the server
`STOP_LIMIT_S` each, and on a busy computer all of it takes its time."""

OnEvent = Callable[[dict[str, str]], None]
"""Called with changes of agents: `agent`, `event`, `detail`; without an agent, with the reason of a wait."""


def start_detached(
    config_path: Path, state: StateFolder, on_event: OnEvent | None = None, *, parent: int | None = None
) -> SwarmStatus:
    """Launch a swarm in the background and wait until it is ready; returns its status.

    Raises:
        RampError: if it does not start; its output is part of the message.
    """
    state.prepare()
    check_room(state.path)
    check_versions(state)
    check_none_is_up(state)
    log_path = state.logs / "supervisor.log"
    begin = log_path.stat().st_size if log_path.exists() else 0
    command = [sys.executable, "-m", "ramp.agents.supervise", str(config_path), "--state-dir", str(state.path)]
    if parent is not None:
        command += ["--parent", str(parent)]
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        found = _wait_up(state, process, on_event)
    except BaseException:  # an impatient Ctrl-C leaves nothing behind
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_LIMIT_S)
        raise
    if found is not None:
        return found
    process.terminate()
    with log_path.open("rb") as log:
        log.seek(begin)
        said = log.read().decode(errors="replace").strip()
    check_room(state.path)  # a full disk leaves no room to say so in the log
    raise TransportError(f"the market did not start: {said or 'no answer in time'}")


def _wait_up(state: StateFolder, process: subprocess.Popen[bytes], on_event: OnEvent | None) -> SwarmStatus | None:
    """Wait for a supervisor in the background; return None if it ended or took too long."""
    seen: dict[str, str] = {}
    begin = told = time.monotonic()
    end, most = begin + READY_LIMIT_S + 10, 0
    while time.monotonic() < end:
        found = _status_so_far(state)
        if on_event is not None and time.monotonic() - told >= WAITING_TOLD_S:
            told = time.monotonic()
            on_event({"agent": "", "event": WAITING, "detail": _waited_for(found, state, told - begin)})
        if on_event is not None and found is not None and found.server.problem != seen.get("", ""):
            seen[""] = problem = found.server.problem
            on_event({"agent": "", "event": WAITING, "detail": f"no server: the {found.server.text} {problem}"})
        for agent in found.agents if found is not None else ():
            if on_event is not None and seen.get(agent.name) != agent.state:
                seen[agent.name] = agent.state
                on_event({"agent": agent.name, "event": agent.state, "detail": agent.detail})
        if found is not None and found.state == UP and found.pid == process.pid:
            return found
        if process.poll() is not None:
            return None
        agents = found.agents if found is not None else ()
        ready = sum(agent.is_up for agent in agents)
        if ready > most:  # the supervisor looks once in its limit whether any has come
            end, most = time.monotonic() + 2 * READY_LIMIT_S + 10, ready
        time.sleep(LOOK_S + LOOK_PER_AGENT_S * len(agents))
    return None


def _status_so_far(state: StateFolder) -> SwarmStatus | None:
    """Return the status of a market that is launched, or None while its supervisor is too busy to answer."""
    with contextlib.suppress(TransportError):
        return status(state)
    return None


def _waited_for(found: SwarmStatus | None, state: StateFolder, waited_s: float) -> str:
    """Say what a launch has waited for, and for how long."""
    begin, logs = f"{waited_s:.0f} s: waiting for", f"their logs are in {state.logs}"
    if found is None:
        return f"{begin} the supervisor; {logs}"
    starting = [agent.name for agent in found.agents if not agent.is_up]
    agents = f"{len(starting)} of {len(found.agents)} agents"
    return f"{begin} {agents} to come up on the {found.server.text}; {logs}"


def check_none_is_up(state: StateFolder) -> None:
    """Refuse to launch a second market in one state folder."""
    if status(state) is not None:
        raise ConfigurationError(
            "a market is already running with this state folder; stop it with `ramp down`", path=state.path
        )


def stop(state: StateFolder) -> bool:
    """Stop the market of a state folder; return whether there was one. Raises `TransportError` if it hangs."""
    found = status(state)
    if found is None:
        return False
    process, ended = os.pidfd_open(found.pid), select.poll()
    ended.register(process, select.POLLIN)
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if ended.poll(1000 * ENDING_LIMIT_S):
            return True
    finally:
        os.close(process)
    raise TransportError(f"the market (process {found.pid}) does not stop")
