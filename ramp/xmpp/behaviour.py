"""Behaviours that pass messages to an agent, and the only module that imports SPADE.

All other modules import SPADE's classes from here, because SPADE must be imported through
`ramp.xmpp.spade_patches.import_spade`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from ramp.model.acl import EncodedMessage
from ramp.xmpp import spade_patches

spade_patches.import_spade()

from spade.agent import Agent  # noqa: E402 (after the import without SPADE's own server)
from spade.behaviour import CyclicBehaviour  # noqa: E402

if TYPE_CHECKING:
    from ramp.xmpp.transport import MarketAgent

__all__ = ["Agent", "Courier", "CyclicBehaviour", "UnmatchedMessages", "behaviour"]

NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})


class Courier(CyclicBehaviour):  # type: ignore[misc]
    """A behaviour that passes its messages to the agent's `on_message`.

    A subclass, which `behaviour` makes, states its performatives. Its name is the name of the behaviour.

    All couriers of an agent call the same `on_message`, one message at a time. If several couriers match a message, the
    courier added first gets it.

    Attributes:
        performatives: accepted values of the metadata field `performative`.
        conditions: required values of further metadata fields.
    """

    performatives: ClassVar[tuple[str, ...]] = ()
    conditions: ClassVar[Mapping[str, str]] = NO_CONDITIONS

    agent: MarketAgent

    def match(self, message: EncodedMessage) -> bool:
        """Return whether a message has a performative and the conditions of this courier."""
        metadata = message.metadata
        if metadata.get("performative") not in self.performatives:
            return False
        return all(metadata.get(name) == value for name, value in self.conditions.items())

    def kill(self, exit_code: object = None) -> None:
        # an empty item wakes `run` while it waits for a message
        super().kill(exit_code)
        if self.queue is not None:
            self.queue.put_nowait(None)

    async def run(self) -> None:
        message: EncodedMessage | None = await self.queue.get()
        if message is not None and not self.is_killed():
            await self.agent.carry(message)


def behaviour(name: str, *performatives: str, conditions: Mapping[str, str] = NO_CONDITIONS) -> type[Courier]:
    """Return a behaviour by its name, with the messages that it takes."""
    return type(name, (Courier,), {"performatives": performatives, "conditions": conditions})


class UnmatchedMessages(Courier):
    """The last behaviour of each agent, for messages that match no other."""

    def match(self, message: EncodedMessage) -> bool:
        return True
