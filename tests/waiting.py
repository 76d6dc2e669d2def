"""Waiting for what must come, on however busy a computer."""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Callable
from typing import Any, Final

import psutil

LIMIT_S: Final = 300.0
"""How long a test waits for one thing, in seconds: for what hangs.

Less than a test has in all, so that it says what it waited for.
"""


def until(
    condition: Callable[[], Any], what: str | Callable[[], str] = "what must come", limit_s: float = LIMIT_S
) -> Any:
    """Wait until a condition holds and return what it gave; an AssertionError says what did not come about."""
    end = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_s:g} s: {what() if callable(what) else what}")
        time.sleep(0.05)
    return found


async def soon(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds, while the event loop goes on, and return what it gave."""
    async with asyncio.timeout(LIMIT_S):
        while not (found := condition()):
            await asyncio.sleep(0.005)
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not buried does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ended_by(
    number: int, program: subprocess.Popen[bytes], family_of: Callable[[psutil.Process], list[psutil.Process]]
) -> bytes:
    """Send a signal to a program once its family is up; fails if any of them stays behind. Return what it has said."""
    family: list[psutil.Process] = []
    try:
        family = family_of(psutil.Process(program.pid))
        program.send_signal(number)
        _, said = program.communicate(timeout=LIMIT_S)
        assert psutil.wait_procs(family, timeout=LIMIT_S)[1] == []
        return said
    finally:
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        if program.poll() is None:
            program.kill()
            program.wait()
