"""Child processes that end with their parent, even if the parent is killed with -9 (Linux prctl)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1

# Asks the kernel to end the process together with its parent, then executes the command. The request survives exec.
# The check of the parent covers a parent that ended before the request.
_TIE_AND_EXEC = f"""
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl({_PR_SET_PDEATHSIG}, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the launcher has ended")
os.execvp(sys.argv[2], sys.argv[2:])
"""


def end_with_parent(parent: int) -> None:
    """Ask the kernel to send SIGTERM to this process when the thread that started it ends.

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
    return [sys.executable, "-I", "-S", "-c", _TIE_AND_EXEC, str(os.getpid()), *command]
