"""What the supervisor asks a process of agents, where the process ends instead of answering."""

import asyncio
import contextlib
import sys

import pytest

from ramp.agents.group_calls import Act, GroupCall
from ramp.agents.supervisor import Supervisor
from ramp.errors import TransportError

ENDS_WHEN_ASKED = "import sys; print(flush=True); sys.stdin.readline(); sys.exit(3)"


async def test_whoever_asks_is_told_at_once(small_market):
    supervisor = Supervisor(*small_market, group_command=(sys.executable, "-c", ENDS_WHEN_ASKED))
    (group,) = [group for group in supervisor._groups if "m1" in group.agents]
    kept_alive = asyncio.create_task(supervisor._keep_alive(group))
    while group.process is None:
        await asyncio.sleep(0)
    with pytest.raises(TransportError, match="has ended with status 3"):
        await supervisor.call(GroupCall(Act.STANDING, "m1"))
    kept_alive.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await kept_alive
    if group.process.returncode is None:
        group.process.kill()
        await group.process.wait()
