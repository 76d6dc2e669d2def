"""Processes that end with the one that started them, even when that one is killed with -9 (Linux prctl)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1

# Run in between: asks the kernel to end the process together with its parent, then becomes the command. The request
# outlives exec. The check of the parent closes the gap in which the parent may have died before the request.
_TIE_AND_EXEC = f"""
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl({_PR_SET_PDEATHSIG}, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the launcher is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""


def end_with_parent(parent: int) -> None:
    """Ask the kernel for a SIGTERM to this process when the thread that started it ends.

    Args:
        parent: process id of the parent, as it knows it itself.

    Raises:
        SystemExit: if the parent is gone already.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one is gone")


def tied(command: Sequence[str]) -> list[str]:
    """A command that runs another one, of any language, so that it ends with this process.

    Args:
        command: program and arguments.
    """
    return [sys.executable, "-I", "-S", "-c", _TIE_AND_EXEC, str(os.getpid()), *command]
