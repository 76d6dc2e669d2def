"""The optional extra `lab`: numba, which compiles inner loops, and matplotlib, which draws pictures."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Final

from ramp.errors import ConfigurationError

INSTALL_LAB: Final = "pip install 'ramp-market[lab]'"

AS_WRITTEN: Final = "NUMBA_DISABLE_JIT"
"""Environment variable by which loops run as they are written."""


def wants_loops_as_written() -> bool:
    """Whether the environment asks for loops as they are written."""
    return os.environ.get(AS_WRITTEN, "0") not in {"", "0"}


def tell_loops() -> None:
    """Write a line to standard error where numba is missing; nothing where it is installed or unwanted."""
    if wants_loops_as_written() or importlib.util.find_spec("numba") is not None:
        return
    notice = "numba is not installed: inner loops run uncompiled, many times slower; install it with"
    print(notice, INSTALL_LAB, file=sys.stderr)


def check_pictures(key: str | None = None) -> None:
    """Refuse a picture that cannot be drawn.

    Args:
        key: the option that asks for it.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigurationError(f"pictures need matplotlib; install it with {INSTALL_LAB}", key=key)
