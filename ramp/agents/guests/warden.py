"""The warden of a guest's process: it leaves no process of the guest behind.

The warden becomes the parent of all orphans among its descendants (Linux `prctl`, child subreaper). Then it forks, and
the child becomes the guest. When the guest ends, the warden is terminated, or the agent's process ends, the warden
kills all remaining descendants, in whatever session they are. If the warden itself is killed, the kernel ends the
guest.
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
"""The warden's exit status is this plus the signal's number if a signal has ended the guest, as in a shell."""

OUT_OF_MEMORY_STATUS: Final = 99
"""Exit status of a guest without enough memory to report that."""


def divide(parent: int, channel: int, memory_mb: int) -> int | None:
    """Turn this process into a warden, and fork the guest.

    Args:
        parent: process id of the agent's process.
        channel: file descriptor for the guest only.
        memory_mb: maximum private memory of the guest in MB of 2**20 bytes.

    Returns:
        None in the guest; in the warden the exit status, after all descendants have ended.

    Raises:
        SystemExit: the agent's process has already ended.
    """
    signal.signal(signal.SIGTERM, _told_to_end)
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _ask_kernel(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one has ended")
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
    """SIGTERM has arrived."""


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
    with contextlib.suppress(OSError):  # if memory runs out, the kernel ends the guest first
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    # only private writable memory; a limit of the address space would include libraries
    resource.setrlimit(resource.RLIMIT_DATA, (memory_mb * 2**20, memory_mb * 2**20))


def _watch(guest: int) -> int:
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == guest:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED_BASE - code


def _end_descendants(guest: int) -> None:
    """Kill children until none is left; those of a killed child become children of the warden."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        try:
            left = [int(child) for child in children.read_text("ascii").split()]
        except OSError:  # a kernel without that list: kill at least the guest's process group
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
