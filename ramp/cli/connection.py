"""The market of a command, and the notice at a terminal while it waits for an answer."""

from __future__ import annotations

from typing import TypeVar

from ramp.cli.views.output import say, waiting
from ramp.client.access import find_market, status
from ramp.client.dialogues import Dialogue
from ramp.client.market import Market
from ramp.control.status import headline
from ramp.runtime.state_folder import StateFolder

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
