"""Runs a swarm in the foreground: for `ramp up`, and as `python -m ramp.agents.supervise` for `ramp.client.swarm`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ramp.agents.supervisor import GROUP_COMMAND, OnEvent, Supervisor
from ramp.errors import RampError
from ramp.runtime.changes.overlay import load_market
from ramp.runtime.config import LogFormat, SwarmConfig
from ramp.runtime.logs.events import as_json_lines, keep_events
from ramp.runtime.state_folder import StateFolder
from ramp.servers.parent import end_with_parent

_log = logging.getLogger("ramp.agents.supervise")


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

    limits = config.logs
    path = state.events / "supervisor.jsonl"
    state.prepare()
    end_events = keep_events(path, rotate_bytes=limits.rotate_bytes, keep=limits.keep, in_log=False)
    try:
        asyncio.run(supervise())
    finally:
        end_events()
    return 0


class Told:
    """Writes to the log what becomes of a market that is up; what keeps it from coming up is told to its launcher."""

    def __init__(self) -> None:
        self._is_up = False

    def up(self) -> None:
        """Every agent is ready, or has been said to be broken."""
        self._is_up = True
        _log.info("the market is up")

    def event(self, event: Mapping[str, str]) -> None:
        """Something has happened to an agent, or to the server."""
        if self._is_up and event["event"] != "stopped":  # all of them do, at the end
            detail = f": {event['detail']}" if event["detail"] else ""
            _log.info("%s is %s%s", event["agent"], event["event"], detail)


def main(arguments: list[str] | None = None) -> int:
    """Run a swarm in the foreground: for `ramp up --detach`, and for programs that want a market of their own."""
    parser = argparse.ArgumentParser(prog="python -m ramp.agents.supervise", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--parent", type=int, help="process id of the launcher, with which the swarm ends")
    options = parser.parse_args(arguments)
    if options.parent is not None:
        end_with_parent(options.parent)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    told = Told()
    state = StateFolder(options.state_dir)
    try:
        config = load_market(options.config, state)
        if config.logs.format is LogFormat.JSON:
            as_json_lines()
        exit_code = run(config, state, ready=told.up, on_event=told.event)
    except RampError as error:
        sys.stderr.write(f"ramp: {error}\n")
        return error.exit_code
    _log.info("the market is stopped")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
