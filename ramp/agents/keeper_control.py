"""What the market's keeper may order over its agent's control channel (paper section 6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ramp.agents.control_channel import ControlChannel, Verbs
from ramp.errors import ConfigurationError
from ramp.model.instant import from_iso
from ramp.protocol import events as ev


class KeeperControl(ControlChannel):
    """Serves the keeper's control socket."""

    def verbs(self) -> Verbs:
        """Everything that the keeper may ask of its agent."""
        return {"deposit": self._deposit, "overview": self._overview}

    async def _deposit(self, request: Any, _: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        amount = request["amount"]
        if not isinstance(amount, int) or isinstance(amount, bool) or amount <= 0:
            raise ConfigurationError(f"a deposit of {amount!r}; right would be a whole number of minor units above 0")
        deposit_id = request.get("deposit_id") or self._ids.new("deposit")
        account = str(request["account"])
        if "@" not in account:
            account = f"{account}@{self._commanded.jid.domain}"
        command = ev.DepositOrdered(deposit_id, account, amount, str(request.get("memo", "")))
        async for answer in self._ask(deposit_id, command):
            yield answer

    async def _overview(self, request: Any, _: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        since, until = (None if request.get(key) is None else from_iso(request[key]) for key in ("since", "until"))
        query_id = self._ids.new("query")
        async for answer in self._ask(query_id, ev.OverviewAsked(query_id, since, until)):
            yield answer
