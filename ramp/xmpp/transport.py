"""The SPADE agent below every party of the market: the XMPP side.

Unlike an agent of SPADE 4.1.4, it reconnects after a server restart or a lost connection. It keeps messages that arrive
before it is set up, and sends through the server even within one process. It refuses messages that servers would
reject, handles bounces separately, and reports a behaviour that fails.

Messages arrive at most once on a server without stream management and at least once with it. The protocol above
retransmits and ignores duplicates.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections import deque
from typing import Any

from ramp.errors import ConfigurationError, DocumentError, TransportError
from ramp.model.acl import EncodedMessage
from ramp.xmpp import wire
from ramp.xmpp.address import sender_of
from ramp.xmpp.behaviour import Agent, Courier, UnmatchedMessages
from ramp.xmpp.link import Link, TransportSettings
from ramp.xmpp.quotas import Complaints, SenderQuota
from ramp.xmpp.registering import register_account
from ramp.xmpp.stream import MarketStream, tls_context

OUTBOX_MESSAGES_MAX = 2_000
"""Maximum number of messages kept while disconnected; a ten-round auction with 100 resources needs about 1 000."""

OUTBOX_BYTES_MAX = 16_000_000
"""Maximum length of all messages kept while disconnected, in characters; about 16 MB."""

MAILBOX_MESSAGES_MAX = 10_000
"""Maximum number of messages waiting for one behaviour; later ones are dropped (the protocol sends them again)."""

_log = logging.getLogger(__name__)


def drop_oldest(outbox: deque[str]) -> int:
    """Drop the oldest stanzas beyond the limits of an outbox, and return their number; the newest stays."""
    size, before = sum(map(len, outbox)), len(outbox)
    while len(outbox) > OUTBOX_MESSAGES_MAX or (size > OUTBOX_BYTES_MAX and len(outbox) > 1):
        size -= len(outbox.popleft())
    return before - len(outbox)


class MarketAgent(Agent, abc.ABC):  # type: ignore[misc]
    """A SPADE agent on the market; subclasses handle messages in `on_message`.

    Create and start it inside a running event loop.

    Args:
        jid: bare address, `user@domain`.
        password: password of its account.
        settings: settings of the connection.

    Attributes:
        dropped: number of incoming messages dropped so far.
        faults: number of programming errors met so far; each ended one message or conversation only.

    Raises:
        ConfigurationError: the address is invalid or not canonical.
    """

    def __init__(self, jid: str, password: str, settings: TransportSettings) -> None:
        if sender_of(jid) != jid:
            raise ConfigurationError(f"invalid XMPP address: got {jid!a}, expected canonical user@domain", key="jid")
        policy = asyncio.get_event_loop_policy()
        super().__init__(jid, password, port=settings.servers[0][1], verify_security=True)
        asyncio.set_event_loop_policy(policy)  # SPADE's container has replaced it by uvloop's
        self.container.unregister(jid)  # it would deliver messages inside the process
        self.settings = settings
        self.client: Any = None  # a MarketStream once started
        self.dropped = 0
        self.faults = 0
        self.link: Link | None = None
        self._last: tuple[EncodedMessage, str] | None = None
        self._outbox: deque[str] = deque()
        self._stopped = False
        self._quota = SenderQuota(settings.quotas)
        self._complaints = Complaints()
        self._carrying = asyncio.Lock()
        self._finished = asyncio.Event()
        self._failure: BaseException | None = None

    # -- hooks for subclasses -------------------------------------------------------------------------------------

    @abc.abstractmethod
    async def on_message(self, message: EncodedMessage) -> None:
        """Handle one message; the next one waits until this returns."""

    def on_bounce(self, message: EncodedMessage, condition: str) -> None:
        """Handle a message that could not be delivered to its peer; the default logs it.

        Args:
            message: as far as the server echoes it.
            condition: XMPP condition, for example `service-unavailable` (RFC 6120, 8.3.3).
        """
        _log.warning("%s: message to %s bounced: %s", self.jid, message.peer, condition)

    def on_behaviour_failed(self, name: str, error: BaseException) -> None:
        """Handle the exception of a behaviour; the default fails the agent, so `wait_finished` raises it."""
        _log.critical("%s: behaviour %s failed: %s", self.jid, name, error, exc_info=error)
        self.fail(error)

    # -- life ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, set up and start the behaviours.

        Raises:
            TransportError: no session within the policy's limits, or the log-in was refused.
        """
        if self.client is not None:
            raise TransportError(f"{self.jid}: already started; create a new agent")
        self.loop = self.container.loop = asyncio.get_running_loop()  # instead of that of the container's first agent
        self.client = MarketStream(
            str(self.jid),
            self.password,
            context=tls_context(self.settings.ca_file),
            on_message=self._arrived,
            on_misaddressed=self._misaddressed,
        )
        self.link = Link(
            self.client,
            self.settings.servers,
            self.settings.policy,
            on_up=self._came_up,
            on_down=self._went_down,
            register=self._registered if self.settings.register else None,
        )
        try:
            await self._hook_plugin_before_connection()
            await self.link.open()
            await self._hook_plugin_after_connection()
            await self.setup()
        except BaseException:
            await self.link.close()
            raise
        self.add_behaviour(UnmatchedMessages())
        self._alive.set()
        for behaviour in self.behaviours:
            if not behaviour.is_running:
                behaviour.start()
        if self.is_connected:
            self.client.send_presence()  # from now on the server delivers messages, also those that it has stored

    async def _registered(self) -> None:
        await register_account(str(self.jid), self.password, "", self.settings.servers, self.settings.ca_file)

    async def stop(self) -> None:
        """Log out and end all behaviours, after the messages already sent have left."""
        self._stopped = True
        if self.is_connected:
            self.client.send_presence(ptype="unavailable")
        for behaviour in list(self.behaviours):
            behaviour.kill()
        if self.link is not None:
            await self.link.close()
        self._alive.clear()
        self._finished.set()

    def fail(self, error: BaseException) -> None:
        """End the agent because of an error; `wait_finished` raises the first such error."""
        if self._failure is None:
            self._failure = error
        self._finished.set()

    async def wait_finished(self) -> None:
        """Wait until the agent has stopped.

        Raises:
            BaseException: the error that ended the agent; the caller must still stop it.
        """
        await self._finished.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def is_connected(self) -> bool:
        """Whether a session is open now."""
        return self.link is not None and self.link.is_up

    def _came_up(self, resumed: bool, again: list[str]) -> None:
        if not resumed and self.is_alive():
            self.client.send_presence()
        self._outbox.extendleft(reversed(again))
        self._drop_oldest()
        while self._outbox:
            self.client.send_text(self._outbox.popleft())
        _log.info("%s: connected%s", self.jid, ", session resumed" if resumed else "")

    def _went_down(self, reason: str) -> None:
        if not self._stopped:
            _log.warning("%s: disconnected: %s", self.jid, reason)

    # -- messages out --------------------------------------------------------------------------------------------

    async def send(self, message: EncodedMessage) -> None:
        """Send a message; while disconnected, keep it in the outbox until the session is open again.

        Args:
            message: its peer is in the agent's own domain unless federation is on.

        Raises:
            TransportError: a bad address, another domain, no body, no metadata, or the agent has stopped.
            DocumentError: a character that XML does not allow;
                or over the size limit; nothing was sent.
        """
        to = message.peer
        if self._stopped:
            raise TransportError(f"message to {to} not sent: {self.jid} has stopped")
        self._check_address(to)
        stanza = wire.addressed(self._content_of(message), to=to, sender=str(self.jid), stanza_id=uuid.uuid4().hex)
        if self.is_connected:
            await self.client.writable()
        if self.is_connected:
            self.client.send_text(stanza)
        else:
            self._outbox.append(stanza)
            self._drop_oldest()

    def _content_of(self, message: EncodedMessage) -> str:
        """Return the stanza of a message without its addresses; one to many receivers is written once."""
        if self._last is not None:
            last, content = self._last
            if last.body is message.body and (last.metadata, last.thread) == (message.metadata, message.thread):
                return content
        content = wire.content_of(message)
        self._last = message, content
        return content

    def _check_address(self, to: str) -> None:
        bare = sender_of(to)
        if bare is None:
            raise TransportError(f"invalid XMPP address: got {to!a}, expected canonical user@domain")
        domain = bare.partition("@")[2]
        if domain != self.jid.domain and not self.settings.federation:
            raise TransportError(f"cannot send to {to}: its domain is not {self.jid.domain}, and federation is off")

    def _drop_oldest(self) -> None:
        if count := drop_oldest(self._outbox):
            _log.warning("%s: outbox full: dropped the %d oldest messages", self.jid, count)

    async def drain(self, limit_s: float = 5.0) -> bool:
        """Wait for confirmation of all sent messages; False after the timeout or without stream management."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.is_connected and self.client.acknowledging:
                    if not self.client.unacknowledged() and not self._outbox:
                        return True
                    self.client.request_acknowledgement()
                    await asyncio.sleep(0.01)
        return False

    # -- messages in ---------------------------------------------------------------------------------------------

    def _arrived(self, element: ElementTree.Element) -> None:
        sender = element.get("from", "")
        if not self.admits(sender.partition("/")[0]):  # canonical: the stream drops all others
            return
        try:
            message = wire.decode_element(element)
        except DocumentError as error:
            self.drop(sender, "message dropped: %s", error)
            return
        except Exception as error:  # a bug in decoding; slixmpp would log a traceback for each message
            self.faults += 1
            self.complain(sender, "message dropped: %s: %a", type(error).__name__, str(error)[:200])
            return
        if element.get("type") == "error":
            self.on_bounce(message, wire.condition_of(element))
        elif message.body:  # else for example a chat state
            self.dispatch(message)

    def admits(self, sender: str) -> bool:
        """Return whether a sender (bare address) may send one more message, and if so count it.

        This is checked before the message is unpacked.
        """
        if self._quota.admits(sender, time.monotonic_ns() // 1000):
            return True
        most = self.settings.quotas.messages_per_sender_per_second
        self.drop(sender, "more than %d messages per second from %s: dropped unread", most, sender)
        return False

    def _misaddressed(self, source: str) -> None:
        self.drop(source, "stanza from %a dropped: the address is not canonical", source[:100])

    def drop(self, sender: str, text: str, *arguments: object) -> None:
        """Count a dropped message, and complain about its sender."""
        self.dropped += 1
        self.complain(sender, text + " (%d so far)", *arguments, self.dropped)

    def complain(self, sender: str, text: str, *arguments: object) -> None:
        """Log a warning about a sender, at most once a minute for each text and sender."""
        if self._complaints.is_due(text, sender, time.monotonic_ns() // 1000):
            _log.warning("%s: " + text, self.jid, *arguments)

    def dispatch(self, msg: EncodedMessage) -> list[asyncio.Task[None]]:
        """Pass a message to the first courier that it matches.

        Unlike SPADE's method, this one creates no tasks, keeps no trace, and passes a message to one courier only.
        """
        if not self.is_alive():
            return []
        couriers = (each for each in self.behaviours if isinstance(each, Courier))
        courier = next((each for each in couriers if each.match(msg)), None)
        if courier is None:
            return []
        if courier.queue.qsize() < MAILBOX_MESSAGES_MAX:
            courier.queue.put_nowait(msg)
        else:
            self.drop(msg.peer, "message from %s dropped: the mailbox of %s is full", msg.peer, courier)
        return []

    async def carry(self, message: EncodedMessage) -> None:
        """Pass one message to `on_message`; couriers call this, one at a time."""
        async with self._carrying:
            await self.on_message(message)

    # -- behaviours ----------------------------------------------------------------------------------------------

    def remove_behaviour(self, behaviour: Any) -> None:
        """Remove a behaviour and report its error, if any; SPADE calls this when a behaviour has ended."""
        super().remove_behaviour(behaviour)
        error = behaviour.exit_code
        if isinstance(error, Exception):
            self.on_behaviour_failed(type(behaviour).__name__, error)
