"""What the market's keeper may order over its agent's control channel (paper section 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ramp.agents.control_channel import ControlChannel
from ramp.control.answering import full_name
from ramp.control.events import Event
from ramp.control.requests import AskOverview, Deposit, Request
from ramp.errors import ConfigurationError
from ramp.protocol import events as ev


class KeeperControl(ControlChannel):
    """Serves the keeper's control socket."""

    async def answer(self, request: Request, reader: asyncio.StreamReader) -> AsyncIterator[Event]:
        """Deposits and the overview."""
        match request:
            case Deposit():
                yield await self._deposit(request)
            case AskOverview(since, until):
                query_id = self._ids.new("query")
                yield await self._ask(query_id, ev.OverviewAsked(query_id, since, until))

    async def _deposit(self, order: Deposit) -> Event:
        if order.amount <= 0:
            reason = f"a deposit of {order.amount}; right would be a whole number of minor units above 0"
            raise ConfigurationError(reason)
        deposit_id = order.deposit_id or self._ids.new("deposit")
        account = full_name(order.account, str(self._commanded.jid.domain))
        return await self._ask(deposit_id, ev.DepositOrdered(deposit_id, account, order.amount, order.memo))
