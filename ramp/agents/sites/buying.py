"""A buyer's agent that sends one stanza to several machines of a site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramp.agents.party_agent import PartyAgent
from ramp.agents.sites.routes import SITE_FIELD, Routes
from ramp.errors import DocumentError, TransportError
from ramp.model.acl import Message
from ramp.model.contents import Proposal
from ramp.xmpp.bundles import Part, pack
from ramp.xmpp.wire import Bounce


class BuyingThroughSites(PartyAgent):
    """Sends calls and rejections for several machines of a site as one stanza, where the machines have said so."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.routes = Routes()
        super().__init__(*args, **keywords)

    async def on_text(self, sender_bare: str, metadata: dict[str, str], thread: str, body: str) -> None:
        """Read a message; an offer that a machine sends by itself may say through whom it can be spoken to."""
        site = metadata.get(SITE_FIELD, "")
        if site:
            self.routes.learn(sender_bare, site)
        await super().on_text(sender_bare, metadata, thread, body)

    async def on_bundle(self, sender: str, parts: Sequence[Part]) -> None:
        """Take the offers of several machines from who speaks for them; nothing else, and from nobody else."""
        for part in parts:
            if self.routes.speaks_for(sender, part.machine):
                self.take_in(part.machine, part.metadata, part.thread, part.body, (Proposal,))
            else:
                self.counters.refused += 1
                self.complain(sender, "%s speaks for %s, which has not said so", sender, part.machine)

    def on_bounce(self, bounce: Bounce) -> None:
        """A site's agent is gone: the machines are spoken to themselves."""
        self.routes.unreachable(bounce.peer_bare)
        super().on_bounce(bounce)

    async def _send_next(self) -> None:
        for receiver, messages in self.routes.next_together(self._outgoing):
            if len(messages) == 1 or not await self._send_together(receiver, messages):
                for message in messages:
                    await self._send(message)

    async def _send_together(self, site: str, messages: Sequence[Message]) -> bool:
        """Send several messages as one; False where that cannot be, and each has to go by itself."""
        try:
            parts = []
            for message in messages:
                encoded = self._encode(message)
                parts.append(Part(message.receiver, encoded.metadata, encoded.thread, encoded.body))
            body, metadata = pack(parts)
            await self.transmit(site, body, metadata, messages[0].conversation_id)
        except (DocumentError, TransportError):  # too long together, or one cannot be written: each tells by itself
            return False
        return True
