"""The market of a command, the notice at a terminal while it waits for an answer, and signals handled like Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final, NoReturn, TypeVar

from ramp.cli.views.output import say, waiting
from ramp.client.access import find_market, status
from ramp.client.dialogues import Dialogue
from ramp.client.market import Market
from ramp.control.status import headline
from ramp.runtime.state_folder import StateFolder

CLOSED: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals of `timeout`, service managers and batch systems, and of a closed terminal."""

T = TypeVar("T")


def open_market(state: StateFolder, user: str | None) -> Market:
    """Open the market of a state folder as a user (default: the first); warn if it has no server."""
    market = Market(find_market(state, user))
    found = status(state)
    if found is not None and found.server.problem:  # the user should know why no answer comes
        say(f"ramp: warning: {headline(found).sentence}")
    return market


def ask(market: Market, dialogue: Dialogue[T], what: str) -> T:
    """Hold a dialogue; a terminal shows meanwhile what it waits for."""
    with waiting(what):
        return market.ask(dialogue)


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
