"""Which messages are the same for all their receivers, so that the server may spread one of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from ramp.model.acl import Message
from ramp.model.contents import CallForProposals, Content

RECEIVERS_MAX: Final = 20_000
"""Receivers whose last call is remembered; those called longest ago go first."""


class Alike:
    """Finds calls of one round; each goes to a receiver in this way once.

    A seal names its receiver, so nothing that is sealed is the same for two. A call that is sent again goes plainly:
    whatever spreads may be what has lost it.
    """

    def __init__(self) -> None:
        self._called: OrderedDict[str, Content] = OrderedDict()

    def runs(self, messages: Iterable[Message]) -> list[list[Message]]:
        """Group neighbours that differ in nothing but their receivers.

        Args:
            messages: in the order in which they are to leave.

        Returns:
            The same in the same order; in each run one message, or several that are alike.
        """
        found: list[list[Message]] = []
        spreading = False
        for message in messages:
            first_time = self._is_first(message)
            if first_time and spreading and _are_alike(found[-1][0], message):
                found[-1].append(message)
            else:
                found.append([message])
            spreading = first_time
        return found

    def _is_first(self, message: Message) -> bool:
        """Whether this is a call that its receiver has not been sent before."""
        if not isinstance(message.content, CallForProposals) or message.seal is not None:
            return False
        known = self._called.pop(message.receiver, None)
        self._called[message.receiver] = message.content
        if len(self._called) > RECEIVERS_MAX:
            self._called.popitem(last=False)
        return known is not message.content


def _are_alike(one: Message, other: Message) -> bool:
    return one.content is other.content and _slots(one) == _slots(other)


def _slots(message: Message) -> tuple[object, ...]:
    return (
        message.performative,
        message.sender,
        message.conversation_id,
        message.reply_with,
        message.in_reply_to,
        message.reply_by,
    )
