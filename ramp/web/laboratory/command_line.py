"""The command line as a process: what simulates is another package's, which `ramp` reaches by its verbs only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from ramp.errors import ConfigurationError

COMMAND: Final = (sys.executable, "-m", "ramp.cli.main")
"""The command line of this very installation."""

ANSWER_LIMIT_S: Final = 180.0
"""How long a verb may take that only tells something, in seconds; all experiments are imported for their list."""

ANSWER_MAX: Final = 16 << 20
"""Bytes of an answer that are read."""

LINE_MAX: Final = 4096
"""Bytes of a line that are read; what is behind them is passed over."""


async def begin(command: Sequence[str], *words: str) -> asyncio.subprocess.Process:
    """Begin a process whose output is read.

    Args:
        command: program and first arguments.
        words: further arguments.

    Raises:
        OSError: if there is no such program, or no room for another process.
    """
    return await asyncio.create_subprocess_exec(
        *command,
        *words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C at the server's terminal is the server's, which ends it in good order
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


async def printed(command: Sequence[str], *words: str) -> bytes:
    """What a verb prints on standard output.

    Raises:
        ConfigurationError: if it fails, with its last line; if it cannot be begun, takes too long or says too much.
    """
    told = " ".join(words)
    try:
        process = await begin(command, *words)
    except OSError as error:
        raise ConfigurationError(f"`ramp {told}` cannot be begun: {error.strerror}") from error
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            answer, said = await asyncio.gather(_read(process.stdout, ANSWER_MAX), _read(process.stderr, ANSWER_MAX))
            await process.wait()
    except TimeoutError:
        raise ConfigurationError(f"`ramp {told}` has not answered within {ANSWER_LIMIT_S:g} s") from None
    finally:
        kill(process)
    if process.returncode != 0:
        last = next((text for text in map(shown, reversed(said.splitlines())) if text), "it said nothing")
        raise ConfigurationError(f"`ramp {told}` has failed: {last}")
    if len(answer) > ANSWER_MAX:
        raise ConfigurationError(f"`ramp {told}` has printed more than {ANSWER_MAX} bytes")
    return answer


def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process with all that it has begun, where it has not ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def shown(line: bytes) -> str:
    """A line of another program as it may be shown: cut, and without signs that draw nothing."""
    text = line[:LINE_MAX].decode("utf-8", errors="replace").strip()
    return "".join(sign if sign.isprintable() else " " for sign in text)


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    """What a stream has, to its end; of more than `most` bytes one more than that."""
    found = bytearray()
    while chunk := await stream.read(1 << 16):
        found += chunk[: most + 1 - len(found)]
    return bytes(found)
