"""Calls of the supervisor to a process of agents: lines of JSON on its standard input.

The answer is an event `answered` of the process (`ramp.agents.group`) with the call's number.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ramp.errors import TransportError

ANSWERED = "answered"

CALL_LIMIT_S: Final = 20.0
"""Timeout of a call in seconds; an agent takes up to 5 s to end."""


class Act(StrEnum):
    """Kind of call.

    STOP: the agent ends for good. RESTART: it ends and starts again with the current configuration. UPDATE: it applies
    changes that need no restart: its certificate, prices of a resource, new accounts of the bank. STANDING: it reports
    its open obligations, or the bank the state of an account.
    """

    STOP = "stop"
    RESTART = "restart"
    UPDATE = "update"
    STANDING = "standing"


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
    plain = json.loads(line)
    return GroupCall(**{**plain, "act": Act(plain["act"])})


class OpenCalls:
    """The supervisor's calls without an answer."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._asked = 0

    async def ask(self, process: str, lines: asyncio.StreamWriter, asked: GroupCall) -> dict[str, Any]:
        """Send a call to a process, through its standard input `lines`, and wait for the answer.

        Raises:
            TransportError: the process has ended.
            TimeoutError, OSError: the process does not answer or read.
        """
        self._asked += 1
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._open[number] = process, answer
        try:
            lines.write(replace(asked, call=number).line())
            await lines.drain()
            event: dict[str, Any] = await asyncio.wait_for(answer, CALL_LIMIT_S)
            return event
        finally:
            del self._open[number]

    def answered(self, event: dict[str, Any]) -> None:
        """Pass an answer to the call that waits for it, if any."""
        _, waiting = self._open.get(event.get("call", 0), ("", None))
        if waiting is not None and not waiting.done():
            waiting.set_result(event)

    def ended(self, process: str, status: int) -> None:
        """Fail the open calls of a process that has ended."""
        for asked, waiting in self._open.values():
            if asked == process and not waiting.done():
                waiting.set_exception(TransportError(f"the process {process} has ended with status {status}"))
