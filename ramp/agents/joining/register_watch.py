"""Follows the register of invitations: the server gets accounts and tokens of the invited, the bank the enrolled."""

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
"""Pause between two looks at the file, in seconds."""

_log = logging.getLogger(__name__)


class RegisterWatch:
    """Looks whether the register has changed; whoever changes it need not know who else is to be told.

    Args:
        state: the state folder.
        give_accounts: makes accounts on the server, passwords by local name; may take a while.
        give_tokens: lets accounts be registered there, or closes them, tokens by local name; may take a while.
        tell_bank: lets the bank look whose accounts it has to open.
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
        """Look until cancelled; what goes wrong once is tried again at the next look, and said once."""
        seen, said = None, ""
        while True:
            if (version := self._register.version) != seen:
                try:
                    await self._follow()
                    seen, said = version, ""
                except (RampError, OSError) as error:
                    if str(error) != said:
                        _log.error("the register of invitations: %s", error)
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
