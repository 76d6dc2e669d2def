"""An agent that lets its server spread what many receivers get alike.

The service is looked for at every new session, and nothing waits for that: until one is found, for receivers of other
domains, and where the service will not, messages go plainly. What it has refused goes plainly once, and it is left
alone for a while. Copies and plain messages may overtake one another (ejabberd's do), as any two messages may.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from typing import Any, Final

from slixmpp.exceptions import IqError

from ramp.errors import DocumentTooLarge, TransportError
from ramp.xmpp import wire
from ramp.xmpp.address import sender_of
from ramp.xmpp.multicast.addresses import (
    DISCO_INFO,
    DISCO_ITEMS,
    Service,
    UnderWay,
    addressed_to_many,
    lots,
    service_in,
    services_in,
)
from ramp.xmpp.transport import MarketAgent

ASK_LIMIT_S: Final = 30.0
"""How long a server may take to say what it can, in seconds; nothing waits for it."""

REST_S: Final = 60.0
"""How long a service that has refused is not asked again, in seconds."""

_log = logging.getLogger(__name__)


class MulticastAgent(MarketAgent):
    """A market agent with `spread` beside `transmit`."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.service: Service | None = None
        self._under_way = UnderWay()
        self._rests_until = 0.0
        self._asking: asyncio.Task[None] | None = None
        self._going_plainly: set[asyncio.Task[None]] = set()

    # -- the service ---------------------------------------------------------------------------------------------

    def on_connected(self, resumed: bool) -> None:
        """A session is open; in a new one the server may be another."""
        super().on_connected(resumed)
        if resumed or not self.settings.multicast:
            return
        self.service = None
        self._stop_asking()
        self._asking = asyncio.get_running_loop().create_task(self._look(), name=f"services for {self.jid}")

    async def stop(self) -> None:
        """End the agent."""
        self._stop_asking()
        await super().stop()

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    async def _look(self) -> None:
        """Find the service of our own server: the server itself, or one of those that it names."""
        domain = str(self.jid.domain)
        try:
            found = service_in(domain, await self._ask(domain, DISCO_INFO))
            if found is None:
                for address in services_in(domain, await self._ask(domain, DISCO_ITEMS)):
                    with contextlib.suppress(IqError):  # another service that does not say what it is
                        found = service_in(address, await self._ask(address, DISCO_INFO))
                    if found is not None:
                        break
        except Exception as error:  # IqError, IqTimeout, or whatever else: everything goes on plainly
            _log.info("%s: the server does not say what it can: %r", self.jid, error)
            return
        if found is not None:
            self.client.service_errors = found.address, self._refused
            self._rests_until = 0.0
            self.service = found
            _log.info("%s: %s spreads, to %d receivers at once", self.jid, found.address, found.receivers_max)

    async def _ask(self, address: str, namespace: str) -> ElementTree.Element:
        request = self.client.Iq()
        request["type"] = "get"
        request["to"] = address
        request.append(ElementTree.Element(f"{{{namespace}}}query"))
        answer = await request.send(timeout=ASK_LIMIT_S)
        found: ElementTree.Element = answer.xml
        return found

    # -- messages out --------------------------------------------------------------------------------------------

    async def spread(
        self, receivers: Sequence[str], body: str, metadata: Mapping[str, str], thread: str
    ) -> Sequence[str]:
        """Let the server send a message to several receivers, where it does that.

        Args:
            receivers: bare addresses, none twice.
            body: the document; not empty.
            metadata: FIPA parameters; at least one, none empty.
            thread: conversation id; "" for none.

        Returns:
            Those to whom nothing has been sent, because they are of another domain, or nothing spreads: to be sent to
            one by one.

        Raises:
            TransportError: no body or no metadata, or the agent has been stopped; nothing has been sent.
            MalformedXml: a character that XML does not allow; nothing has been sent.
        """
        if self._stopped:
            raise TransportError(f"{self.jid}: has been stopped; message to {len(receivers)} receivers not sent")
        service, domain = self.service, f"@{self.jid.domain}"
        if service is None or time.monotonic() < self._rests_until:
            return receivers
        near = [each for each in receivers if each.endswith(domain) and sender_of(each) == each]
        if len(near) < 2:
            return receivers
        prepared = self._prepare(near[0], body, metadata, thread)
        done: set[str] = set()
        for lot in lots(near, service.receivers_max):
            if len(lot) >= 2 and await self._spread_lot(service, lot, prepared):
                done.update(lot)
        return [each for each in receivers if each not in done]

    async def _spread_lot(self, service: Service, lot: Sequence[str], prepared: wire.PreparedMessage) -> bool:
        """Ask the service to spread a message; False where it does not fit into a stanza with all the addresses."""
        stanza_id = uuid.uuid4().hex
        try:
            stanza = addressed_to_many(
                prepared,
                lot,
                service=service.address,
                sender=str(self.jid),
                stanza_id=stanza_id,
                stanza_max_bytes=self.settings.stanza_max_bytes,
            )
        except DocumentTooLarge:
            return False
        self._under_way.add(stanza_id, lot, prepared)
        self.counters.sent += len(lot)
        await self._post(stanza)
        return True

    def _refused(self, element: ElementTree.Element) -> None:
        """The service will not spread a message: it goes plainly, once."""
        known = self._under_way.take(element.get("id") or "")
        if known is None:
            return
        self._rests_until = time.monotonic() + REST_S
        receivers, prepared = known
        self.complain(
            "",
            "%s does not spread (%s); messages go to each receiver by themselves for %g s",
            element.get("from"),
            wire.condition_of(element),
            REST_S,
        )
        task = asyncio.get_running_loop().create_task(self._send_plainly(receivers, prepared))
        self._going_plainly.add(task)
        task.add_done_callback(self._going_plainly.discard)

    async def _send_plainly(self, receivers: Sequence[str], prepared: wire.PreparedMessage) -> None:
        for receiver in receivers:
            if self._stopped:
                return
            self.counters.respread += 1
            await self._post(
                prepared.addressed(
                    to=receiver,
                    sender=str(self.jid),
                    stanza_id=uuid.uuid4().hex,
                    stanza_max_bytes=self.settings.stanza_max_bytes,
                )
            )
