"""Follows the register of invitations: passes accounts and tokens to the server, and new members to the bank."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ramp.errors import RampError
from ramp.runtime.clock import SystemClock
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.runtime.joining.register import Register
from ramp.runtime.state_folder import StateFolder

LOOK_S: Final = 0.5
"""Pause between two checks of the file in seconds."""

_log = logging.getLogger(__name__)


class RegisterWatch:
    """Checks whether the register has changed, and passes changes on.

    Args:
        state: the state folder.
        give_accounts: creates accounts on the server from passwords by local name; may block.
        give_tokens: sets tokens of accounts on the server by local name, or closes accounts; may block.
        tell_bank: lets the bank open accounts of new members.
    """

    def __init__(
        self,
        state: StateFolder,
        give_accounts: Callable[[dict[str, str]], None],
        give_tokens: Callable[[dict[str, AccountToken | None]], None],
        tell_bank: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._register = Register(state.invitations)
        self._give_accounts = give_accounts
        self._give_tokens = give_tokens
        self._tell_bank = tell_bank
        self._given: dict[str, str | AccountToken | None] = {}
        self._members = frozenset(entry.invitation.name for entry in self._register.members())

    async def run(self) -> None:
        """Check until cancelled; retry a failure at the next check, and log it once."""
        seen, said = None, ""
        while True:
            if (version := self._register.version) != seen:
                try:
                    await self._follow()
                    seen, said = version, ""
                except (RampError, OSError) as error:
                    if str(error) != said:
                        _log.error("cannot apply the register of invitations: %s", error)
                    said = str(error)
            await asyncio.sleep(LOOK_S)

    async def _follow(self) -> None:
        now = SystemClock().now()
        tokens = self._register.account_tokens(now)
        changed = {name: token for name, token in tokens.items() if self._given.get(name, "") != token}
        if changed:
            await asyncio.to_thread(self._give_tokens, changed)
            self._given.update(changed)
        accounts = self._register.accounts(now)
        new = {name: password for name, password in accounts.items() if self._given.get(name) != password}
        if new:
            await asyncio.to_thread(self._give_accounts, new)
            self._given.update(new)
        members = frozenset(entry.invitation.name for entry in self._register.members())
        if members != self._members:
            await self._tell_bank()
            self._members = members
