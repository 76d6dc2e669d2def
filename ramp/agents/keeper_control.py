"""What the market's keeper may order over its agent's control channel (paper section 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from ramp.agents.control_channel import ControlChannel
from ramp.agents.roles import CommandedAgent
from ramp.control.answering import full_name
from ramp.control.events import Event
from ramp.control.requests import AskOverview, Deposit, Request
from ramp.errors import ConfigurationError
from ramp.model.contents import DepositMade
from ramp.model.money import credits_text
from ramp.protocol import events as ev
from ramp.runtime.changes.audit_log import add_line
from ramp.runtime.state_folder import StateFolder


class KeeperControl(ControlChannel):
    """Serves the keeper's control socket.

    Args:
        agent: the keeper's.
        path: where the socket is.
        state: the market's state folder, for its audit log.
    """

    def __init__(self, agent: CommandedAgent, path: Path, state: StateFolder) -> None:
        super().__init__(agent, path)
        self._state = state

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        """Deposits and the overview."""
        match request:
            case Deposit():
                yield await self._deposit(request, who)
            case AskOverview(since, until):
                query_id = self._ids.new("query")
                yield await self._ask(query_id, ev.OverviewAsked(query_id, since, until))

    async def _deposit(self, order: Deposit, who: str) -> Event:
        if order.amount <= 0:
            reason = f"a deposit of {order.amount}; right would be a whole number of minor units above 0"
            raise ConfigurationError(reason)
        deposit_id = order.deposit_id or self._ids.new("deposit")
        account = full_name(order.account, str(self._commanded.jid.domain))
        done = await self._ask(deposit_id, ev.DepositOrdered(deposit_id, account, order.amount, order.memo))
        if isinstance(done, DepositMade):
            what = f"{credits_text(done.amount)} credits to {account} ({deposit_id})"
            add_line(self._state, self._commanded.now(), who, "deposit", account, what)
        return done
