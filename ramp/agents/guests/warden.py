"""The warden of a guest's process: it leaves no process of the guest behind, and limits the memory of them all.

The warden adopts all orphans among its descendants. Then it forks, and the child becomes the guest. When the guest
ends, all of its processes together take too much memory, the warden is terminated, or the agent's process ends, the
warden kills all remaining descendants, in whatever session they are. If the warden itself is killed, the kernel ends
the guest, and the agent ends what the guest has started (`GuestProcess`).
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from ramp.launching import processes

WEIGH_EVERY_S: Final = 1.0
"""Pause in seconds between two sums of the memory of all processes of the guest."""

END_LIMIT_S: Final = 60.0
"""Timeout of the end of all descendants in seconds."""

KILLED_BASE: Final = 128
"""The warden's exit status is this plus the signal's number if a signal has ended the guest, as in a shell."""

OUT_OF_MEMORY_STATUS: Final = 99
"""Exit status of a guest without enough memory to report that, and of a warden whose guest takes too much."""


def divide(parent: int, channel: int, memory_mb: int) -> int | None:
    """Turn this process into a warden, and fork the guest.

    Args:
        parent: process id of the agent's process.
        channel: file descriptor for the guest only.
        memory_mb: maximum memory of all processes of the guest in MB of 2**20 bytes.

    Returns:
        None in the guest; in the warden the exit status, after all descendants have ended.

    Raises:
        SystemExit: the agent's process has already ended.
    """
    signal.signal(signal.SIGTERM, _told_to_end)
    processes.ask_kernel(processes.PR_SET_PDEATHSIG, signal.SIGTERM)
    processes.ask_kernel(processes.PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one has ended")
    warden = os.getpid()
    guest = os.fork()
    if guest == 0:
        _become_guest(warden, memory_mb)
        return None
    try:
        os.close(channel)
        signal.signal(signal.SIGALRM, partial(_weigh, memory_mb * 2**20))
        signal.setitimer(signal.ITIMER_REAL, WEIGH_EVERY_S, WEIGH_EVERY_S)
        return _watch(guest)
    except _ToldToEnd:
        return KILLED_BASE + signal.SIGTERM
    except _TooMuchMemory:
        return OUT_OF_MEMORY_STATUS
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.end_descendants(processes.kill, _bury, END_LIMIT_S)


class _ToldToEnd(BaseException):
    """SIGTERM has arrived."""


def _told_to_end(*_: object) -> NoReturn:
    raise _ToldToEnd


class _TooMuchMemory(BaseException):
    """All processes of the guest together exceed the limit."""


def _weigh(limit: int, *_: object) -> None:
    if processes.memory_of(processes.descendants(os.getpid())) > limit:
        raise _TooMuchMemory


def _become_guest(warden: int, memory_mb: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    processes.ask_kernel(processes.PR_SET_PDEATHSIG, signal.SIGKILL)
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


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
