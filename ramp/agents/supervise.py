"""Runs a market in the foreground, for `ramp up` and, as `python -m ramp.agents.supervise`, for `ramp.client.swarm`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ramp.agents.supervisor import OnEvent, Supervisor
from ramp.errors import RampError
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.overlay import load_market
from ramp.runtime.logs import as_json_lines, keep_events, log_to_stderr
from ramp.runtime.state_folder import StateFolder
from ramp.runtime.storage_errors import check_room, reason_of
from ramp.servers.parent import end_with_parent

_log = logging.getLogger("ramp.agents.supervise")


def run(
    config: SwarmConfig,
    state: StateFolder,
    *,
    ready: Callable[[], None] | None = None,
    on_event: OnEvent | None = None,
) -> int:
    """Launch a market and run it until SIGINT or SIGTERM; `ready` is called once when all agents are ready.

    Raises:
        RampError: the market cannot be launched.
    """

    async def supervise() -> None:
        supervisor = Supervisor(config, state, on_event)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, supervisor.stop)
        await supervisor.run(ready)

    limits = config.logs
    path = state.events / "supervisor.jsonl"
    state.prepare()
    check_room(state.path)
    end_events = keep_events(path, rotate_bytes=limits.rotate_bytes, keep=limits.keep, in_log=False)
    try:
        asyncio.run(supervise())
    finally:
        end_events()
    return 0


class Told:
    """Logs events of a running market; the launcher reports problems of the start."""

    def __init__(self) -> None:
        self._is_up = False

    def up(self) -> None:
        self._is_up = True
        _log.info("the market is up")

    def event(self, event: Mapping[str, str]) -> None:
        if self._is_up and event["event"] != "stopped":  # at the end all agents stop
            detail = f": {event['detail']}" if event["detail"] else ""
            _log.info("%s is %s%s", event["agent"], event["event"], detail)


def main(arguments: list[str] | None = None) -> int:
    """Run a market in the foreground, for `ramp up --detach` and for programs that start a market."""
    parser = argparse.ArgumentParser(prog="python -m ramp.agents.supervise", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--parent", type=int, help="process id of the launcher; the market ends with it")
    options = parser.parse_args(arguments)
    if options.parent is not None:
        end_with_parent(options.parent)
    log_to_stderr(logging.INFO)
    told = Told()
    state = StateFolder(options.state_dir)
    try:
        config = load_market(options.config, state)
        if config.logs.format == "json":
            as_json_lines()
        exit_code = run(config, state, ready=told.up, on_event=told.event)
    except RampError as error:
        sys.stderr.write(f"ramp: {error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"ramp: {reason_of(error)}\n")
        return 1
    _log.info("the market is stopped")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
