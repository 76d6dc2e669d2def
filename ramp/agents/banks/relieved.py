"""A Banking Agent that another one may relieve: it speaks only while it is the bank.

Both have the bank's name, account and key, for to the market they are one. Which of them is the bank stands in the
ledger's database; who stands by is not logged in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from ramp.agents.roles import BankingAgent
from ramp.errors import LedgerUnavailable
from ramp.model.acl import Message
from ramp.runtime.logs.events import record

if TYPE_CHECKING:
    from ramp.runtime.redundancy.bank_lease import BankLease

_log = logging.getLogger(__name__)


class RelievedBankingAgent(BankingAgent):
    """Keeps the accounts while its lease lasts.

    Args:
        lease: taken; the ledger is under it.
    """

    def __init__(self, *args: Any, lease: BankLease, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._lease = lease
        self._renewing: asyncio.Task[None] | None = None

    async def setup(self) -> None:
        """Give signs from now on, and do what all agents do."""
        self._renewing = asyncio.get_running_loop().create_task(self._renew())
        record(str(self.jid), "takeover", f"{self._lease.active} is the bank now (epoch {self._lease.epoch})")
        await super().setup()

    async def stop(self) -> None:
        """End the agent; the other one need not wait for the lease's end."""
        if self._renewing is not None:
            self._renewing.cancel()
        await super().stop()
        with contextlib.suppress(LedgerUnavailable):
            await asyncio.to_thread(self._lease.give_up)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease.pause_s)
            try:
                await asyncio.to_thread(self._lease.renew)
            except LedgerUnavailable as error:
                self.fail(error)
                return

    async def _send(self, message: Message) -> None:
        """Say something, unless another bank speaks by now: it may have decided otherwise."""
        try:
            self._lease.assert_held()
        except LedgerUnavailable as error:
            _log.warning("%s: %s to %s not sent: %s", self.jid, message.performative, message.receiver, error)
            self.fail(error)
            return
        await super()._send(message)
