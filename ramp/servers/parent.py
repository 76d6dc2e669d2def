"""Child processes that end with their parent, even if the parent is killed with -9 (Linux prctl).

Run as a program with a process id and a command, this file executes the command tied to that process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Ask the kernel to send SIGTERM to this process when the thread that started it ends; this survives exec.

    Args:
        parent: process id of the parent, as the parent sees it.

    Raises:
        SystemExit: the parent has already ended.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one has ended")


def tied(command: Sequence[str]) -> list[str]:
    """Return a command that runs another command so that it ends with this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 (the launcher's own command)
