"""Follows the purchases of all users of the market and stores them as sales, without their buyers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ramp.client.access import find_market
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.every_user import watch_user
from ramp.control.events import Event
from ramp.model.instant import to_datetime
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.progress import RequestEnded
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder
from ramp.web.live.follower import Follower
from ramp.web.machines.sale_history import SaleHistory, sales_of


class SaleWatch(Follower):
    """Watches a market's users from the first call of `keep` on.

    Attributes:
        refusals: of the last rounds of requests that ended since then, by code.
        since: when the counting began.
    """

    def __init__(self, state: StateFolder, history: SaleHistory) -> None:
        super().__init__(watch_user(state))
        self._state = state
        self._history = history
        self.refusals: Counter[str] = Counter()
        self.since = to_datetime(SystemClock().now())

    def take(self, event: Event) -> None:
        if isinstance(event, RequestEnded):
            if event.outcome.rounds:
                self.refusals.update(each.refusal.code.value for each in event.outcome.rounds[-1].refusals)
            self._store([event.outcome])

    async def catch_up(self, user: str) -> None:
        listed = await AsyncMarket(find_market(self._state, user)).requests()
        self._store(each.outcome for each in listed if each.outcome is not None)

    def _store(self, outcomes: Iterable[RequestOutcome]) -> None:
        if self._history.sold(sale for outcome in outcomes for sale in sales_of(outcome)):
            self.tell()
