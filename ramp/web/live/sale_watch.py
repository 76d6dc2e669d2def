"""Follows the purchases of all users of the market and stores them as sales, without their buyers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.every_user import EveryUser, watch_user
from ramp.control.events import Event, RequestEnded, Watching
from ramp.errors import RampError
from ramp.model.instant import to_datetime
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder
from ramp.web.machines.sale_history import SaleHistory, sales_of


class SaleWatch:
    """Watches a market's users from the first call of `keep` on; earlier purchases come from their agents' records.

    Attributes:
        refusals: of the last rounds of requests that ended since then, by code.
        since: when the counting began.
    """

    def __init__(self, state: StateFolder, history: SaleHistory) -> None:
        self._state = state
        self._history = history
        self._users = EveryUser(watch_user(state), self._hear)
        self.refusals: Counter[str] = Counter()
        self.since = to_datetime(SystemClock().now())
        self._listeners: set[Callable[[], None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, users: Iterable[str]) -> None:
        """Watch exactly these users from now on."""
        self._users.keep(users)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener after every sale; the returned function ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def end(self) -> None:
        await self._users.end()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hear(self, user: str, event: Event) -> None:
        if isinstance(event, Watching):
            task = asyncio.get_running_loop().create_task(self._catch_up(user))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(event, RequestEnded):
            if event.outcome.rounds:
                self.refusals.update(each.refusal.code.value for each in event.outcome.rounds[-1].refusals)
            if self._history.sold(sales_of(event.outcome)):
                self._tell()

    async def _catch_up(self, user: str) -> None:
        with contextlib.suppress(RampError):  # the next connection catches up
            listed = await AsyncMarket(find_market(self._state, user)).requests()
            outcomes = [each.outcome for each in listed if each.outcome is not None]
            if self._history.sold(sale for outcome in outcomes for sale in sales_of(outcome)):
                self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()
