"""A guest's process as seen by the agent: start, questions, end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from ramp.agents.guests import messages
from ramp.agents.guests.messages import MESSAGE_BYTES_MAX, FromGuest, NonsenseSaid, ToGuest
from ramp.agents.guests.worker import KILLED_BASE, OUT_OF_MEMORY_STATUS
from ramp.launching.processes import ControlGroup, end_marked
from ramp.runtime.guests.questions import OUT_OF_MEMORY
from ramp.text import printable

END_LIMIT_S: Final = 2.0
"""Timeout in seconds of a warden that ends its guest; then the agent kills the warden."""

LINE_MAX: Final = 300
"""Maximum length of a shown line in characters."""

WORKER: tuple[str, ...] = (sys.executable, "-m", "ramp.agents.guests.worker")
"""Command of the process, without the options for parent, channel and memory; tests replace it."""

MARK: Final = "RAMP_GUEST"
"""Variable in the environment of all processes of a guest."""

LINES_A_MINUTE: Final = 20
"""Maximum number of shown lines of a guest per minute; further ones are counted."""

_KEPT: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PYTHONPATH")
_KEPT_TOO: Final = ("LC_", "XDG_", "RAMP_LOGS", "NUMBA_")


class GuestGone(Exception):
    """The guest's process has ended; the text gives the reason."""


def environment_of(source: Mapping[str, str], further: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a guest's variables from those of the agent; `further` are names that the configuration allows."""
    kept = {key: value for key, value in source.items() if key in _KEPT or key.startswith(_KEPT_TOO) or key in further}
    return {**kept, "PYTHONUNBUFFERED": "1"}


class GuestProcess:
    """A running process of a guest with its warden, created by `start`.

    Everything that the guest starts has `mark`, `NAME=value`, in its environment.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        say: Callable[[str], None],
        mark: str,
        group: ControlGroup | None,
    ) -> None:
        self._mark = mark
        self._group = group
        self._process = process
        self._reader = reader
        self._writer = writer
        self._printed = asyncio.create_task(_show_lines(process.stdout, say))
        self.ended = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, environment: Mapping[str, str], memory_mb: int, say: Callable[[str], None]) -> GuestProcess:
        """Start a process that inherits only its end of the channel and the given environment.

        Args:
            environment: its environment variables; under the name of `MARK` what no other running guest has, so that
                what an earlier process of this one has left behind is found and ended.
            memory_mb: maximum memory of all its processes together in MB of 2**20 bytes.
            say: called with each line that it prints.

        Raises:
            OSError: the process cannot be started.
        """
        environment = {MARK: secrets.token_hex(), **environment}
        mark = f"{MARK}={environment[MARK]}"
        group = ControlGroup.made(f"ramp-guest-{hashlib.sha256(mark.encode()).hexdigest()[:16]}")
        await asyncio.to_thread(end_marked, mark, os.geteuid())
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *WORKER,
                    *("--parent", str(os.getpid()), "--channel", str(theirs.fileno())),
                    *("--memory-mb", str(memory_mb)),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(),),
                    env=environment,
                    start_new_session=True,
                )
            if group is not None:
                with contextlib.suppress(OSError):
                    group.add(process.pid)
        except BaseException:
            ours.close()
            raise
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MESSAGE_BYTES_MAX)
        return cls(process, reader, writer, say, mark, group)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, message: ToGuest) -> FromGuest:
        """Send a message and wait for the answer, without a timeout.

        Raises:
            GuestGone: the process has ended before its answer.
            NonsenseSaid: the answer is invalid, or a message is too long.
        """
        try:
            self._writer.write(messages.write(message))
            await self._writer.drain()
            return messages.read_answer(await self._reader.readuntil(b"\n"))
        except asyncio.LimitOverrunError as error:
            raise NonsenseSaid(f"message of more than {MESSAGE_BYTES_MAX} bytes") from error
        except (OSError, asyncio.IncompleteReadError) as error:
            reason = "it has closed the channel"
            with contextlib.suppress(TimeoutError):
                reason = how_ended(await asyncio.wait_for(asyncio.shield(self.ended), END_LIMIT_S))
            raise GuestGone(reason) from error

    async def kill(self) -> None:
        """End the process and all that it has started, and wait for that."""
        self._writer.close()
        if self._process.returncode is None:
            self._process.terminate()
            await self._wait(self.ended)
        if self._process.returncode is None:
            for end in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    end(self._process.pid, signal.SIGKILL)
        if self._group is not None:
            self._group.kill()
        await asyncio.to_thread(end_marked, self._mark, os.geteuid())  # its warden may have been killed
        await self._wait(self.ended)
        if self._group is not None:
            self._group.remove()
        await self._wait(self._printed)  # its last lines

    async def _wait(self, what: asyncio.Task[Any]) -> None:
        """Wait until a task is over, or until a timeout: a process that has escaped may hold the pipe."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(what), END_LIMIT_S)


def how_ended(status: int) -> str:
    """Describe how a process has ended."""
    if status == OUT_OF_MEMORY_STATUS:
        return OUT_OF_MEMORY
    number = status - KILLED_BASE if status > KILLED_BASE else -status
    if number <= 0:
        return f"its process ended with status {status}"
    try:
        return f"its process was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"its process was ended by signal {number}"


async def _show_lines(stream: asyncio.StreamReader | None, say: Callable[[str], None]) -> None:
    """Show the output of a guest within the limits; drop the rest."""
    assert stream is not None
    begun, shown, dropped, line = time.monotonic(), 0, 0, b""
    while piece := await stream.read(8192):
        *whole, line = (line + piece).split(b"\n")
        line = line[: 4 * LINE_MAX]
        if time.monotonic() - begun > 60:
            if dropped:
                say(f"({dropped} more lines dropped in the last minute)")
            begun, shown, dropped = time.monotonic(), 0, 0
        for each in whole:
            shown += 1
            if shown > LINES_A_MINUTE:
                dropped += 1
            else:
                say(_printable(each))
    if line and shown < LINES_A_MINUTE:
        say(_printable(line))


def _printable(line: bytes) -> str:
    text = line[: 4 * LINE_MAX].decode("utf-8", "replace")[:LINE_MAX]
    return printable(text)
