"""Buyers' questions about a machine, until the machine has answered."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.contents import MachineQuery, MachineStatus
from ramp.protocol.effects import DescribeMachine, Effect, reply

DESCRIBING_MAX: Final = 1_000
"""Maximum waiting questions; the oldest are dropped, and repeated by their sender."""


class MachineQueries:
    """The open questions of one resource, the oldest first."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Message] = OrderedDict()
        self._asked = 0

    def ask(self, message: Message, query: MachineQuery) -> list[Effect]:
        """Ask the machine under an id of our own, as two buyers may use the same."""
        for asked in self._open.values():
            if (asked.sender, asked.content) == (message.sender, query):
                return []  # a copy; the machine is still at work on the first
        self._asked += 1
        call_id = f"describe-{self._asked}"
        self._open[call_id] = message
        if len(self._open) > DESCRIBING_MAX:
            self._open.popitem(last=False)
        return [DescribeMachine(call_id, query.horizon)]

    def answered(self, call_id: str, snapshot: str) -> list[Effect]:
        """Send the machine's answer to the buyer; ignored if the question was dropped."""
        asked = self._open.pop(call_id, None)
        if asked is None:
            return []
        assert isinstance(asked.content, MachineQuery)
        status = MachineStatus(asked.content.query_id, snapshot)
        return [reply(asked, Performative.INFORM, status)]
