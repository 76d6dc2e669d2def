"""Behaviours that carry messages into an agent, and the one place where SPADE is imported.

SPADE must be imported through `ramp.xmpp.spade_patches.import_spade`, so every other module takes its classes from
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ramp.xmpp import spade_patches

spade_patches.import_spade()

from spade.agent import Agent  # noqa: E402 (after the import without SPADE's own server)
from spade.behaviour import CyclicBehaviour  # noqa: E402
from spade.message import Message  # noqa: E402
from spade.presence import PresenceManager  # noqa: E402
from spade.template import BaseTemplate, Template  # noqa: E402
from spade.trace import TraceStore  # noqa: E402

if TYPE_CHECKING:
    from ramp.xmpp.transport import MarketAgent

__all__ = [
    "Agent",
    "BaseTemplate",
    "Courier",
    "CyclicBehaviour",
    "Message",
    "PresenceManager",
    "Template",
    "TraceStore",
    "UnmatchedMessages",
]


class Courier(CyclicBehaviour):  # type: ignore[misc]
    """A behaviour that carries the messages its template asks for to the agent's `on_text`.

    Subclasses state which performatives they serve; the class's name is the behaviour's name:

        class RequestAQuote(Courier):
            performatives = ("propose", "refuse")

    All couriers of an agent feed the same `on_text`, one message at a time. Of the couriers that match a message the
    first one added gets it. A courier without performatives gets what no other behaviour wants.

    Attributes:
        performatives: values of the metadata field `performative` that it serves.
        conditions: further metadata fields and the values they must have.
    """

    performatives: ClassVar[tuple[str, ...]] = ()
    conditions: ClassVar[Mapping[str, str]] = {}

    agent: MarketAgent

    def message_template(self) -> BaseTemplate | None:
        """The SPADE template of the messages served; None matches every message."""
        if not self.performatives:
            return Template(metadata=dict(self.conditions)) if self.conditions else None
        result: BaseTemplate | None = None
        for performative in self.performatives:
            one = Template(metadata={**self.conditions, "performative": performative})
            result = one if result is None else result | one
        return result

    def kill(self, exit_code: object = None) -> None:
        """End the behaviour, also while it waits for a message."""
        super().kill(exit_code)
        if self.queue is not None:
            self.queue.put_nowait(None)

    async def run(self) -> None:
        """Carry one message."""
        message = await self.queue.get()
        if message is not None and not self.is_killed():
            await self.agent.carry(message)


class UnmatchedMessages(Courier):
    """The default behaviour: what no other behaviour of the agent asks for."""
