"""Launches, stops and looks at swarms: what the command line calls, and `python -m ramp.agents.supervise`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ramp.agents.parent import end_with_parent
from ramp.agents.status_board import status_file
from ramp.agents.supervisor import GROUP_COMMAND, READY_LIMIT_S, STOP_LIMIT_S, OnEvent, Supervisor
from ramp.errors import ConfigurationError, RampError, TransportError
from ramp.runtime.config import SwarmConfig
from ramp.runtime.config_file import load_config
from ramp.runtime.state_folder import StateFolder, check_private

STATUS_LIMIT_S = 3.0
"""How long a supervisor may take to say what is up, in seconds."""


def run(
    config: SwarmConfig,
    state: StateFolder,
    *,
    ready: Callable[[], None] | None = None,
    on_event: OnEvent | None = None,
    group_command: Sequence[str] = GROUP_COMMAND,
) -> int:
    """Launch a swarm and stay until SIGINT or SIGTERM.

    Args:
        config: the swarm.
        state: its state folder.
        ready: called once when every agent is ready.
        on_event: told what happens to agents.
        group_command: runs a process of agents, with the arguments of `ramp.agents.group`.

    Raises:
        RampError: if it cannot be launched.
    """

    async def supervise() -> None:
        supervisor = Supervisor(config, state, on_event, group_command=group_command)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, supervisor.stop)
        await supervisor.run(ready)

    asyncio.run(supervise())
    return 0


def start_detached(config_path: Path, state: StateFolder, on_event: OnEvent | None = None) -> dict[str, Any]:
    """Launch a swarm in the background and wait until it is ready; returns its status.

    Args:
        config_path: the configuration's file.
        state: the state folder.
        on_event: told what happens to agents while waiting.

    Raises:
        RampError: if it does not come up; what it wrote is part of the message.
    """
    state.prepare()
    if status(state) is not None:
        raise ConfigurationError("a swarm is already up with this state folder; `ramp down` stops it", path=state.path)
    log_path = state.logs / "supervisor.log"
    begin = log_path.stat().st_size if log_path.exists() else 0
    command = [sys.executable, "-m", "ramp.agents.supervise", str(config_path), "--state-dir", str(state.path)]
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        found = _wait_up(state, process, on_event)
    except BaseException:  # an impatient Ctrl-C leaves nothing behind
        process.terminate()
        raise
    if found is not None:
        return found
    process.terminate()
    with log_path.open("rb") as log:
        log.seek(begin)
        said = log.read().decode(errors="replace").strip()
    raise TransportError(f"the swarm did not come up: {said or 'no answer in time'}")


def _wait_up(state: StateFolder, process: subprocess.Popen[bytes], on_event: OnEvent | None) -> dict[str, Any] | None:
    """Wait for a supervisor in the background; its status once up, None if it ended or took too long."""
    seen: dict[str, str] = {}
    end = time.monotonic() + READY_LIMIT_S + 10
    while time.monotonic() < end:
        found = status(state)
        for agent in found["agents"] if found is not None else ():
            if on_event is not None and seen.get(agent["name"]) != agent["state"]:
                seen[agent["name"]] = agent["state"]
                on_event({"agent": agent["name"], "event": agent["state"], "detail": agent["detail"]})
        if found is not None and found["state"] == "up" and found["pid"] == process.pid:
            return found
        if process.poll() is not None:
            return None
        time.sleep(0.05)
    return None


def stop(state: StateFolder) -> bool:
    """Stop the swarm of a state folder; returns whether there was one.

    Raises:
        TransportError: if it does not end.
    """
    found = status(state)
    if found is None:
        return False
    pid = found["pid"]
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + STOP_LIMIT_S + 10
    while time.monotonic() < end:
        if status(state) is None and not _is_alive(pid):
            return True
        time.sleep(0.05)
    raise TransportError(f"the swarm (process {pid}) does not end")


def status(state: StateFolder) -> dict[str, Any] | None:
    """What is up with a state folder, or None.

    The supervisor itself is asked. Where it does not answer, what it wrote last to `run/swarm.json` is returned, with a
    `note` that says how old that is.

    Raises:
        ConfigurationError: if the folder of the control sockets is not the user's own alone.
    """
    told = _told(state)
    if told is not None:
        return told
    try:
        found: dict[str, Any] = json.loads(status_file(state).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not _is_alive(found["pid"]):
        return None
    when = found.get("as_of", "an unknown time")
    return {**found, "note": f"the supervisor does not answer; this is what it wrote at {when}"}


def _told(state: StateFolder) -> dict[str, Any] | None:
    """What the supervisor says is up, or None where nobody answers."""
    if not state.sockets.exists():
        return None
    check_private(state.sockets)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(STATUS_LIMIT_S)
            line.connect(str(state.status_socket))
            with line.makefile("rb") as answer:
                told: dict[str, Any] = json.loads(answer.read())
    except (OSError, ValueError):
        return None
    return told


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def main(arguments: list[str] | None = None) -> int:
    """Run a swarm in the foreground: for `ramp up --detach`, and for programs that want a market of their own."""
    parser = argparse.ArgumentParser(prog="python -m ramp.agents.supervise", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--parent", type=int, help="process id of the launcher, with which the swarm ends")
    options = parser.parse_args(arguments)
    if options.parent is not None:
        end_with_parent(options.parent)
    try:
        return run(load_config(options.config), StateFolder(options.state_dir))
    except RampError as error:
        sys.stderr.write(f"ramp: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
