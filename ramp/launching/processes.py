"""Processes that must not outlive the one that started them: found in whatever session they are, and killed.

A process that adopts orphans (Linux `prctl`, child subreaper) remains an ancestor of everything started below it. If it
is killed itself, its descendants are still found by a variable in their environment. Root puts them into a control
group as well, where the machine has version 2, because the kernel kills a group at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Self

from ramp.launching.worker import carrying

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36

PAUSE_S: Final = 0.02
"""Pause between two rounds of killing, in seconds."""


def ask_kernel(option: int, value: int) -> None:
    """Set an option of this process (`prctl`)."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below one, the eldest first."""
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text("ascii").split())
    return found[1:]


def stopped(pids: Iterable[int]) -> list[int]:
    """Return those processes that a signal or a debugger has stopped."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] in "Tt":
                found.append(pid)
    return found


def memory_of(pids: Iterable[int]) -> int:
    """Return the memory of processes in bytes, without files; what several of them share counts once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def kill(pids: Iterable[int], sign: int = signal.SIGKILL) -> list[int]:
    """Send a signal to processes, and return those to which this account may not send it."""
    refused = []
    for pid in pids:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            pass
        except PermissionError:
            refused.append(pid)
    return refused


def end_marked(mark: str, uid: int) -> None:
    """Kill all processes of an account with `NAME=value` in their environment, wherever they are; try for 2 s."""
    until = time.monotonic() + 2.0
    while found := carrying(mark, uid):
        kill(found)
        if time.monotonic() > until:
            return
        time.sleep(PAUSE_S)


def end_descendants(kill_all: Callable[[list[int]], object], bury: Callable[[], object], limit_s: float) -> bool:
    """Kill everything below this process, which adopts orphans, and wait for it; return whether nothing is left."""
    until = time.monotonic() + limit_s
    while True:
        bury()
        left = descendants(os.getpid())
        if not left or time.monotonic() > until:
            return not left
        kill_all(left)
        time.sleep(PAUSE_S)


class ControlGroup:
    """A control group of one job or guest, made by root where the machine has version 2."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def made(cls, name: str) -> Self | None:
        """Make a group, or return None where that is impossible; one of an earlier process is ended first."""
        if os.geteuid() != 0:
            return None
        with contextlib.suppress(OSError):
            mounts = (line.split() for line in Path("/proc/self/mounts").read_text("utf-8").splitlines())
            for _, where, kind, *_ in mounts:
                group = cls(Path(where) / name)
                if kind == "cgroup2":
                    group._folder.mkdir(exist_ok=True)
                    group.kill()
                    return group
        return None

    def add(self, pid: int) -> None:
        """Move a process into the group; what it starts from now on belongs to it."""
        (self._folder / "cgroup.procs").write_text(str(pid), "ascii")

    def kill(self) -> None:
        """Kill everything in the group."""
        with contextlib.suppress(OSError):  # before Linux 5.14
            (self._folder / "cgroup.kill").write_text("1", "ascii")

    def remove(self) -> None:
        """Remove the empty group."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()
