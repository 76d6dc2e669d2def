"""One life of a guest's process, as the agent holds it: started, spoken to, killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from ramp.agents.guests import messages
from ramp.agents.guests.messages import LENGTH_BYTES, FromGuest, ToGuest
from ramp.agents.guests.warden import KILLED_BASE, OUT_OF_MEMORY_STATUS
from ramp.runtime.guests.answers import OUT_OF_MEMORY

END_LIMIT_S: Final = 2.0
"""How long a warden may take to end its guest before it is killed itself, in seconds."""

LINE_MAX: Final = 300
"""Characters of a line that a guest prints; the rest is not shown."""

WORKER: tuple[str, ...] = (sys.executable, "-m", "ramp.agents.guests.worker")
"""What is started, to which the parent's id, the channel and the memory are added; tests have one with traps."""

LINES_A_MINUTE: Final = 20
"""Lines of a guest that are shown; more are counted."""

_KEPT: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PYTHONPATH")
_KEPT_TOO: Final = ("LC_", "XDG_", "RAMP_LOGS", "NUMBA_")


class GuestGone(Exception):
    """The guest's process has ended; the text says how."""


def environment_of(source: Mapping[str, str], further: tuple[str, ...] = ()) -> dict[str, str]:
    """What a guest sees of the agent's environment.

    Args:
        source: the agent's.
        further: names of variables that the configuration lets through.
    """
    kept = {key: value for key, value in source.items() if key in _KEPT or key.startswith(_KEPT_TOO) or key in further}
    return {**kept, "PYTHONUNBUFFERED": "1"}


class GuestProcess:
    """A guest's process that runs; made by `start`.

    Args:
        process: the warden of the guest.
        reader: what the guest says.
        writer: what it is told.
        say: told every line that the guest prints, within limits.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        say: Callable[[str], None],
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._printed = asyncio.create_task(_show_lines(process.stdout, say))
        self.ended = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, environment: Mapping[str, str], memory_mb: int, say: Callable[[str], None]) -> GuestProcess:
        """Start a process; it has nothing of the agent but its end of the channel and its part of the environment.

        Args:
            environment: what it sees.
            memory_mb: private memory that it may have, in MB of 2**20 bytes.
            say: told every line that it prints.

        Raises:
            OSError: if there is no room for it.
        """
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
                    env=dict(environment),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        return cls(process, reader, writer, say)

    @property
    def pid(self) -> int:
        """Of the warden."""
        return self._process.pid

    async def ask(self, message: ToGuest) -> FromGuest:
        """Say something and wait for what comes back; whoever cannot wait for ever cancels.

        Raises:
            GuestGone: if the process ends before it has answered.
            NonsenseSaid: if what comes back is no message, or the message is too long.
        """
        try:
            self._writer.write(messages.write(message))
            await self._writer.drain()
            size = messages.check_size(int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "big"))
            return messages.read_answer(await self._reader.readexactly(size))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise GuestGone(await self._how_it_ended()) from error

    async def _how_it_ended(self) -> str:
        with contextlib.suppress(TimeoutError):
            status = await asyncio.wait_for(asyncio.shield(self.ended), END_LIMIT_S)
            return how_ended(status)
        return "it has closed the channel"

    async def kill(self) -> None:
        """End the process and all that it has started; returns when it is gone."""
        self._writer.close()
        if not self.ended.done():
            self._process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.ended), END_LIMIT_S)
        if not self.ended.done():
            for end in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    end(self._process.pid, signal.SIGKILL)
            await self.ended
        with contextlib.suppress(TimeoutError):  # its last lines; something that has got away may still hold the pipe
            await asyncio.wait_for(self._printed, END_LIMIT_S)


def how_ended(status: int) -> str:
    """How a process has ended, in words."""
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
    """Show what a guest prints: so many lines a minute, none of them long; the rest is read and dropped."""
    assert stream is not None
    begun, shown, dropped, line = time.monotonic(), 0, 0, b""
    while piece := await stream.read(8192):
        *whole, line = (line + piece).split(b"\n")
        line = line[: 4 * LINE_MAX]
        if time.monotonic() - begun > 60:
            if dropped:
                say(f"({dropped} further lines in the last minute)")
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
    return "".join(letter if letter.isprintable() else "?" for letter in text)
