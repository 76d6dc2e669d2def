"""Signals that ask a program to end, taken as Ctrl-C is, so that what it has begun is ended in good order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Final

CLOSED: Final = (signal.SIGTERM, signal.SIGHUP)
"""What `timeout`, service managers and batch systems send, and what a terminal sends that is closed."""


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
