"""`ramp.launch`, `ramp.launch_async`: a market for this program, in processes on XMPP or simulated in this one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from ramp.client import dialogues
from ramp.client.access import Access, find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.market import Market
from ramp.client.swarm import OnEvent, start_detached, status, stop
from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.options import checked, nearest_name
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.sites import EMBEDDED, PROSODY
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.state_folder import StateFolder
from ramp.shipped_files import DEFAULT_SWARM, find_config

TRANSPORT_GROUP: Final = "ramp.transports"
"""Entry points that open a market without processes: callables (SwarmConfig, user or None, seed) -> Access."""

SERVERS: Final = (EMBEDDED, PROSODY, "external")
"""Transports that are XMPP servers, as configurations name them."""

REGISTRATION_LIMIT_S: Final = 15.0
"""How long resources may take to register once their agents are ready, in seconds; they repeat it every few."""

REGISTRATION_PAUSE_S: Final = 0.05
"""Pause between two looks, in seconds."""

OpenTransport = Callable[[SwarmConfig, "str | None", int], Access]


@checked
def launch(
    config: str | Path = DEFAULT_SWARM,
    *,
    transport: str | None = None,
    state_dir: Path | str | None = None,
    user: str | None = None,
    seed: int = 0,
) -> Market:
    """Launch a market; the end of the `with` block, `close`, or the end of this program stops it.

    Args:
        config: a TOML file, or the name of a market that comes with RAMP: `quickstart`, `table2`, `torus`.
        transport: `embedded`, `prosody` or `external` for agents in processes on a real XMPP server, where the
            configuration must say the same (default: as it says); `simulated` for the same parties in this process and
            in virtual time, which begins in January 2027 and passes only during calls.
        state_dir: where to keep keys, journals and the ledger (default: a temporary folder, removed at the end).
            A simulated market keeps nothing.
        user: local name of the user (default: the first).
        seed: seed of a simulated market.

    Raises:
        ConfigurationError: if the configuration or the transport is wrong.
        TransportError: if the market does not start; its output is part of the message.
    """
    loaded = load_config(find_config(str(config)))
    if transport is None or transport in SERVERS:
        if transport not in (None, loaded.server.kind):
            raise ConfigurationError(
                f"the transport {transport!r} differs from the configuration's server {loaded.server.kind!r}; "
                "change [server] kind in the configuration",
                path=loaded.path,
                key="server.kind",
            )
        return _launch_processes(loaded, state_dir, user)
    if state_dir is not None:
        raise ConfigurationError(f"the transport {transport!r} keeps no state; leave out state_dir")
    return Market(_transport(transport)(loaded, user, seed))


def _transport(name: str) -> OpenTransport:
    entries = entry_points_by_name(TRANSPORT_GROUP)
    if name not in entries:
        near = nearest_name(name, [*SERVERS, *sorted(entries)])
        raise ConfigurationError(f"unknown transport {name!r}{near}", key="transport")
    opened: OpenTransport = entries[name].load()
    return opened


def _launch_processes(config: SwarmConfig, state_dir: Path | str | None, user: str | None) -> Market:
    with contextlib.ExitStack() as stack:
        path = state_dir or stack.enter_context(tempfile.TemporaryDirectory(prefix="ramp-"))
        state = StateFolder(Path(path).absolute())
        start_detached(config.path.absolute(), state, parent=os.getpid())
        stack.callback(stop, state)
        wait_registered(config, state)
        access = find_market(state, user)
        return Market(access, stack.pop_all().close)


@checked
@contextlib.asynccontextmanager
async def launch_async(
    config: str | Path = DEFAULT_SWARM,
    *,
    transport: str | None = None,
    state_dir: Path | str | None = None,
    user: str | None = None,
    seed: int = 0,
) -> AsyncIterator[AsyncMarket]:
    """Launch a market for asyncio: `async with ramp.launch_async("table2") as market: ...`; the block stops it.

    The arguments and errors are those of `ramp.launch`. Launching and ending run in a thread of their own. A simulated
    market answers several tasks one after the other.
    """
    launching = asyncio.ensure_future(
        asyncio.to_thread(launch, config, transport=transport, state_dir=state_dir, user=user, seed=seed)
    )
    try:
        market = await asyncio.shield(launching)
    except asyncio.CancelledError:
        # the thread continues; stop the market that it launches
        await asyncio.to_thread((await launching).close)
        raise
    try:
        yield AsyncMarket(market.access)
    finally:
        await asyncio.to_thread(market.close)


def launch_detached(
    config: SwarmConfig, state: StateFolder, on_event: OnEvent | None = None, *, parent: int | None = None
) -> list[str]:
    """Launch a market that ends with process `parent`, if any; return the resources that do not register."""
    start_detached(config.path.absolute(), state, on_event, parent=parent)
    return wait_registered(config, state)


def wait_registered(config: SwarmConfig, state: StateFolder) -> list[str]:
    """Wait until every running resource of a configuration is registered; return the names of those missing."""
    found = status(state)
    ready = [agent for agent in found.agents if agent.is_up] if found is not None else []
    asking = next((agent.name for agent in ready if agent.role == "user"), None)
    if asking is None:
        return []
    market = Market(find_market(state, asking))
    wanted = {config.address(agent.name) for agent in ready if agent.role == "resource"}
    end = time.monotonic() + REGISTRATION_LIMIT_S
    while True:
        listed = market.ask(dialogues.resources(market.access.domain))
        missing = wanted.difference(each.address for each in listed)
        if not missing or time.monotonic() > end:
            return sorted(missing)
        time.sleep(REGISTRATION_PAUSE_S)
