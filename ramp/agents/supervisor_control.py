"""What the market's owner may change while it runs, over the supervisor's control socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, get_args

from ramp.agents.changing import Changing
from ramp.agents.control_channel import ControlSocket
from ramp.control.events import Event
from ramp.control.market_changes import OwnerRequest
from ramp.control.requests import Request
from ramp.runtime.state_folder import StateFolder

_OWNED: Final = get_args(OwnerRequest)


class SupervisorControl(ControlSocket):
    """Serves the supervisor's control socket.

    Args:
        changing: carries changes out.
        domain: of the market.
        state: its state folder.
    """

    def __init__(self, changing: Changing, domain: str, state: StateFolder) -> None:
        super().__init__(f"the supervisor of {domain}", state.supervisor_socket)
        self._changing = changing

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        """Every change of the table."""
        if isinstance(request, _OWNED):
            yield await self._changing.perform(request, who)
