"""Signals that ask a program to end, handled like Ctrl-C so that it can clean up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Final

CLOSED: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals of `timeout`, service managers and batch systems, and of a closed terminal."""


@contextlib.contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Treat these signals as Ctrl-C in the block; ignored ones, as under `nohup`, stay ignored."""
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
