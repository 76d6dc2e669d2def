"""Keeps a guest's process: whatever ends it, nothing that it has started is left behind.

The warden asks the kernel to be given every orphan among its descendants (Linux `prctl`, child subreaper), then forks:
the child becomes the guest. When the guest ends, or the warden is told to end, or the agent's process is gone, it kills
all that are left, children of children included, wherever they have moved to. If the warden itself is killed, the
kernel ends the guest.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

KILLED_BASE: Final = 128
"""A guest that a signal has ended gives its warden this exit status plus the signal's number, as a shell would."""

OUT_OF_MEMORY_STATUS: Final = 99
"""A guest that has no memory left to say so ends with this exit status."""


def divide(parent: int, channel: int, memory_mb: int) -> int | None:
    """Become a warden and its guest.

    Args:
        parent: process id of the agent's process.
        channel: file descriptor that is the guest's alone.
        memory_mb: private memory that the guest may have, in MB of 2**20 bytes.

    Returns:
        None in the guest's process; in the warden, the status to exit with, after everything has ended.

    Raises:
        SystemExit: if the agent's process is gone already.
    """
    signal.signal(signal.SIGTERM, _told_to_end)
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _ask_kernel(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one is gone")
    warden = os.getpid()
    guest = os.fork()
    if guest == 0:
        _become_guest(warden, memory_mb)
        return None
    try:
        os.close(channel)
        return _watch(guest)
    except _ToldToEnd:
        return KILLED_BASE + signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants(guest)


class _ToldToEnd(BaseException):
    """SIGTERM has come."""


def _told_to_end(*_: object) -> NoReturn:
    raise _ToldToEnd


def _ask_kernel(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _become_guest(warden: int, memory_mb: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(1)
    os.setsid()
    with contextlib.suppress(OSError):  # where memory runs out, the kernel ends the guest before anybody else
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    # What can be written and is nobody else's: all of the address space would count libraries, too.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_mb * 2**20, memory_mb * 2**20))


def _watch(guest: int) -> int:
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == guest:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED_BASE - code


def _end_descendants(guest: int) -> None:
    """Kill all children until none is left: those of a killed child become children of the warden."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        try:
            left = [int(child) for child in children.read_text("ascii").split()]
        except OSError:  # a kernel without that list: the guest and what has stayed in its group
            with contextlib.suppress(ProcessLookupError):
                os.killpg(guest, signal.SIGKILL)
            return
        for child in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
