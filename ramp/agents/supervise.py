"""Runs a swarm in the foreground: for `ramp up`, and as `python -m ramp.agents.supervise` for `ramp.client.swarm`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ramp.agents.supervisor import GROUP_COMMAND, OnEvent, Supervisor
from ramp.errors import RampError
from ramp.runtime.config import SwarmConfig
from ramp.runtime.config_file import load_config
from ramp.runtime.state_folder import StateFolder
from ramp.servers.parent import end_with_parent


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
