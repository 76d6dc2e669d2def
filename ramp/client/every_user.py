"""Watches the requests of all users of a market at once, through restarts of their agents.

The control sockets lie in the market's state folder, which only its owner reads; so this is the owner's view.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import aclosing, suppress
from typing import Final

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.control.events import Event, Watching
from ramp.errors import RampError
from ramp.runtime.state_folder import StateFolder

PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0)
"""Pauses before a User Agent that does not answer is asked again, in seconds; the last from then on."""


class EveryUser(ABC):
    """Watches all users of a market; a subclass takes the events."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def keep(self, users: Iterable[str]) -> None:
        """Watch exactly these users from now on; keep the connections of those already watched."""
        wanted = set(users)
        for name in wanted - set(self._tasks):
            self._tasks[name] = asyncio.get_running_loop().create_task(self._follow(name))
        for name in set(self._tasks) - wanted:
            self._tasks.pop(name).cancel()

    async def end(self) -> None:
        """Stop watching; requests continue at the users' agents."""
        tasks = list(self._tasks.values())
        self.keep(())
        await asyncio.gather(*tasks, return_exceptions=True)

    def market(self, user: str) -> AsyncMarket:
        """Return the market as a user, by local name; raises `RampError` if the user is not there."""
        return AsyncMarket(find_market(self._state, user))

    @abstractmethod
    def take(self, user: str, event: Event) -> None:
        """Take an event of a user."""

    async def catch_up(self, market: AsyncMarket) -> None:  # noqa: B027 (optional)
        """Read what happened to a user before a connection; a `RampError` leaves that to the next connection."""

    async def _follow(self, user: str) -> None:
        failures = 0
        while True:
            try:
                market = self.market(user)
                async with aclosing(market.watch()) as events:
                    async for event in events:
                        failures = 0
                        if isinstance(event, Watching):
                            with suppress(RampError):
                                await self.catch_up(market)
                        else:
                            self.take(user, event)
            except RampError as error:
                logging.getLogger(__name__).info("watching %s: %s", user, error)
            except Exception:  # an error here or in the callback must not end the watch
                logging.getLogger(__name__).exception("watching %s", user)
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
            failures += 1
