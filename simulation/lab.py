"""The optional extra `lab`: numba, which compiles inner loops, and matplotlib, which draws pictures."""

from __future__ import annotations

import importlib.util
import os
from typing import Final

from ramp.errors import ConfigurationError

INSTALL_LAB: Final = "pip install 'ramp-market[lab]'"

AS_WRITTEN: Final = "NUMBA_DISABLE_JIT"
"""Environment variable by which loops run as they are written."""


def wants_loops_as_written() -> bool:
    """Whether the environment asks for loops as they are written."""
    return os.environ.get(AS_WRITTEN, "0") not in {"", "0"}


def loops_notice() -> str:
    """Return a line for the user where numba is missing and loops are slow; empty where it is installed or unwanted."""
    if wants_loops_as_written() or importlib.util.find_spec("numba") is not None:
        return ""
    return f"numba is not installed: inner loops run uncompiled, many times slower; install it with {INSTALL_LAB}"


def check_pictures(key: str | None = None) -> None:
    """Refuse a picture that cannot be drawn.

    Args:
        key: the option that asks for it.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigurationError(f"pictures need matplotlib; install it with {INSTALL_LAB}", key=key)
