"""`ramp.connect` and `ramp.connect_async`: the way into a market that is running."""

from __future__ import annotations

from pathlib import Path

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.market import Market
from ramp.runtime.state_folder import state_folder


def connect(state_dir: Path | str | None = None, *, user: str | None = None) -> Market:
    """A market that is running, as one of its users.

    Args:
        state_dir: where it keeps its state (default: $RAMP_STATE, or ~/.local/state/ramp), as for `ramp --state-dir`.
        user: local name of the user (default: the first of the market).

    Raises:
        NoMarket: if none is running there.
        ConfigurationError: if it has no such user, or its folder is open to others.
    """
    return Market(find_market(state_folder(state_dir), user))


def connect_async(state_dir: Path | str | None = None, *, user: str | None = None) -> AsyncMarket:
    """The same for asyncio: `async with ramp.connect_async() as market: ...`."""
    return AsyncMarket(find_market(state_folder(state_dir), user))
