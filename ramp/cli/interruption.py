"""Signals that ask a program to end, handled like Ctrl-C so that it can clean up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final, NoReturn

CLOSED: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals of `timeout`, service managers and batch systems, and of a closed terminal."""


@contextlib.contextmanager
def interrupted_by(*numbers: signal.Signals, again_s: float = 0.0) -> Iterator[None]:
    """Treat these signals as Ctrl-C in the block; ignored ones, as under `nohup`, stay ignored.

    Args:
        numbers: the signals.
        again_s: seconds after which one of them counts as a second Ctrl-C; 0 for never.
    """
    before = {number: signal.getsignal(number) for number in (*numbers, signal.SIGALRM)}

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, 0.0 if number == signal.SIGALRM else again_s)
        raise KeyboardInterrupt

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
