"""One stream of the events of a running market: auctions, agents, machines, and its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.every_user import EveryUser, watch_user
from ramp.client.machine_state import MachineState
from ramp.client.swarm import status
from ramp.control.events import Event
from ramp.control.status import SwarmStatus
from ramp.errors import RampError
from ramp.model.instant import Instant
from ramp.runtime.clock import SystemClock
from ramp.runtime.logs import LOOK_S, MarketEvent, follow_events
from ramp.runtime.state_folder import StateFolder

AGENTS_S: Final = 1.0
"""Pause between two looks at the agents, in seconds."""

MACHINES_S: Final = 5.0
"""Pause between two questions to the machines, in seconds."""


@dataclass(frozen=True, slots=True)
class AuctionHeard:
    """An event of a user's request."""

    at: Instant
    user: str
    event: Event


@dataclass(frozen=True, slots=True)
class AgentsSeen:
    """The supervisor's status; None if no market is running."""

    at: Instant
    status: SwarmStatus | None


@dataclass(frozen=True, slots=True)
class MachinesSeen:
    """The machines that have answered, by the resource's local name."""

    at: Instant
    machines: Mapping[str, MachineState]


@dataclass(frozen=True, slots=True)
class EventLogged:
    """An event of the market, as `ramp events` shows it."""

    at: Instant
    event: MarketEvent


Seen = AuctionHeard | AgentsSeen | MachinesSeen | EventLogged
"""One event of the market."""


async def watch_market(state: StateFolder, tell: Callable[[Seen], None]) -> None:
    """Report all events of a market until cancelled; the market may stop and start meanwhile."""
    now = SystemClock().now
    users = EveryUser(watch_user(state), lambda user, event: tell(AuctionHeard(now(), user, event)))

    async def agents() -> None:
        while True:
            try:
                found = await asyncio.to_thread(status, state)
            except RampError:
                found = None
            tell(AgentsSeen(now(), found))
            users.keep(found.names("user") if found is not None else ())
            await asyncio.sleep(AGENTS_S)

    async def machines() -> None:
        while True:
            try:
                market = AsyncMarket(await asyncio.to_thread(find_market, state, None))
                tell(
                    MachinesSeen(
                        now(),
                        {each.name: each.machine for each in await market.resources(machines=True) if each.machine},
                    )
                )
            except RampError:  # the agents' line shows the problem
                pass
            await asyncio.sleep(MACHINES_S)

    async def events() -> None:
        for event in follow_events(state.events, wait=lambda _: None):
            if event is None:
                await asyncio.sleep(LOOK_S)
            else:
                tell(EventLogged(event.at, event))

    try:
        await asyncio.gather(agents(), machines(), events())
    finally:
        await users.end()
