"""A process of agents, and the supervisor's calls to it: lines of JSON on its standard input.

The answer is an event `answered` of the process (`ramp.agents.group`) with the call's number.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from ramp.errors import TransportError

ANSWERED = "answered"

CALL_LIMIT_S: Final = 20.0
"""Timeout of a call in seconds; an agent takes up to 5 s to end."""


Act = Literal["stop", "restart", "update", "standing"]
"""Kind of call.

stop: the agent ends for good. restart: it ends and starts again with the current configuration. update: it applies
changes that need no restart: its certificate, prices of a resource, new accounts of the bank. standing: it reports its
open obligations, or the bank the state of an account.
"""


@dataclass(frozen=True, slots=True)
class GroupCall:
    """One question.

    Attributes:
        act: its kind.
        agent: local name of the agent.
        account: name of an account, for the bank.
        call: its number, set when it is asked.
    """

    act: Act
    agent: str
    account: str = ""
    call: int = 0

    def line(self) -> bytes:
        """Write the call as `read_call` reads it."""
        return json.dumps(asdict(self)).encode() + b"\n"


def read_call(line: bytes) -> GroupCall:
    """Read what `GroupCall.line` has written."""
    return GroupCall(**json.loads(line))


@dataclass(slots=True, eq=False)
class GroupProcess:
    """A process of agents as the supervisor sees it, with its calls that have no answer yet.

    Its task starts it again whenever it ends; `deaths` counts how often it has ended by itself.
    """

    name: str
    agents: list[str]
    process: asyncio.subprocess.Process | None = None
    task: asyncio.Task[None] | None = None
    deaths: int = 0
    _open: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    _asked: int = 0

    async def ask(self, asked: GroupCall) -> tuple[list[str], list[str]]:
        """Send a call; return open obligations and further information.

        Raises:
            TransportError: the process does not run, ends or does not answer, or the call fails.
        """
        process = self.process
        if process is None or process.returncode is not None or process.stdin is None:
            raise TransportError(f"the process of {asked.agent} is not running")
        self._asked += 1
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._open[number] = answer
        try:
            process.stdin.write(replace(asked, call=number).line())
            await process.stdin.drain()
            event = await asyncio.wait_for(answer, CALL_LIMIT_S)
        except (TimeoutError, OSError) as error:
            raise TransportError(f"the process of {asked.agent} ({process.pid}) does not answer") from error
        finally:
            del self._open[number]
        if event["detail"]:
            raise TransportError(str(event["detail"]))
        return event.get("open", []), event.get("told", [])

    def answered(self, event: dict[str, Any]) -> None:
        """Pass an answer to the call that waits for it, if any."""
        waiting = self._open.get(event.get("call", 0))
        if waiting is not None and not waiting.done():
            waiting.set_result(event)

    def ended(self, status: int) -> None:
        """Fail all open calls, because the process has ended."""
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(TransportError(f"the process {self.name} has ended with status {status}"))

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
