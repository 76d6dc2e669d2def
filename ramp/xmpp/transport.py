"""A SPADE agent that one can rely on: the XMPP side of every party of the market.

What SPADE 4.1.4 leaves out is here: the agent comes back by itself after a server restart or a cut line, keeps what
arrives before it is set up, never takes SPADE's shortcut inside a process (so a message means the same everywhere),
refuses what servers would choke on before it is sent, tells bounces from messages, and reports a behaviour that
dies instead of living on deaf.

Delivery is at most once on a server without stream management and at least once on one with it: the protocol above
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
from collections.abc import Mapping
from typing import Any

from ramp.errors import ConfigurationError, DocumentError, TransportError
from ramp.xmpp import spade_patches, wire
from ramp.xmpp.address import sender_of
from ramp.xmpp.behaviour import Agent, BaseTemplate, Courier, Message, PresenceManager, TraceStore, UnmatchedMessages
from ramp.xmpp.complaints import Complaints
from ramp.xmpp.link import Link
from ramp.xmpp.outbox import Outbox
from ramp.xmpp.quotas import SenderQuota
from ramp.xmpp.settings import TransportCounters, TransportSettings
from ramp.xmpp.stream import MarketStream, tls_context

EARLY_MESSAGES_MAX = 1_000
"""Messages kept that arrive before the agent's behaviours run (a server hands over what it stored at log-in)."""

MAILBOX_MESSAGES_MAX = 10_000
"""Messages waiting for one behaviour; more are given up, the newest first (the protocol sends them again)."""

_log = logging.getLogger(__name__)


class MarketAgent(Agent, abc.ABC):  # type: ignore[misc]
    """A SPADE agent on the market; subclasses say what to do with a message in `on_text`.

    Create and start it inside a running event loop.

    Args:
        jid: bare address, `user@domain`.
        password: of its account.
        settings: how to reach the server.

    Raises:
        ConfigurationError: the address is none, or not canonical.
    """

    def __init__(self, jid: str, password: str, settings: TransportSettings) -> None:
        if sender_of(jid) != jid:
            raise ConfigurationError(f"{jid!a} is no XMPP address user@domain in its prepared form", key="jid")
        policy = asyncio.get_event_loop_policy()
        super().__init__(jid, password, port=settings.servers[0][1], verify_security=True)
        # SPADE's container installs uvloop's policy and delivers inside the process; this agent wants neither.
        asyncio.set_event_loop_policy(policy)
        self.container.unregister(str(self.jid))
        self._adopt_loop()
        self.settings = settings
        self.client: Any = None  # a MarketStream once started
        self.counters = TransportCounters()
        self.traces = TraceStore(0)  # SPADE's keeps the last 1,000 messages of every agent
        self.link: Link | None = None
        self._last: tuple[str, Mapping[str, str], str, wire.PreparedMessage] | None = None
        self._outbox = Outbox(settings.outbox_messages_max)
        self._early: list[Any] = []
        self._default: Courier | None = None
        self._stopped = False
        self._quota = SenderQuota(settings.quotas)
        self._complaints = Complaints()
        self._carrying = asyncio.Lock()
        self._connected = asyncio.Event()
        self._finished = asyncio.Event()
        self._failure: BaseException | None = None

    def _adopt_loop(self) -> None:
        """Use the running event loop: SPADE's container keeps that of the first agent of the process for ever."""
        with contextlib.suppress(RuntimeError):  # none is running yet; `start` comes here again
            self.loop = self.container.loop = asyncio.get_running_loop()
            asyncio.set_event_loop(self.loop)

    # -- what subclasses fill in ---------------------------------------------------------------------------------

    @abc.abstractmethod
    async def on_text(self, sender_bare: str, metadata: dict[str, str], thread: str, body: str) -> None:
        """Take in one message; the next one waits until this returns.

        Args:
            sender_bare: `user@domain` as the server states it; identity is proved by the signature in the document.
            metadata: FIPA parameters (`performative`, `reply-with`, ...).
            thread: conversation id, "" where the peer gave none.
            body: the document.
        """

    def on_bounce(self, bounce: wire.Bounce) -> None:
        """A message of ours could not be delivered; the default writes it to the log."""
        _log.warning("%s: message to %s bounced: %s", self.jid, bounce.peer_bare, bounce.condition)

    def on_behaviour_failed(self, name: str, error: BaseException) -> None:
        """A behaviour died of an exception; the default fails the agent, so that `wait_finished` raises."""
        _log.critical("%s: behaviour %s died: %s", self.jid, name, error, exc_info=error)
        self.fail(error)

    def on_connected(self, resumed: bool) -> None:
        """A session is open: the first one, a new one after a loss, or (`resumed`) the old one again."""
        _log.info("%s: connected%s", self.jid, ", session resumed" if resumed else "")

    def on_disconnected(self, reason: str) -> None:
        """The session is lost; the agent is reconnecting by itself."""
        _log.warning("%s: disconnected: %s", self.jid, reason)

    # -- life ----------------------------------------------------------------------------------------------------

    async def start(self, auto_register: bool = True) -> None:
        """Connect, set up, start the behaviours.

        Args:
            auto_register: together with `settings.register`: create the account if need be.

        Raises:
            TransportError: no session within the policy's limits, or the log-in was refused.
        """
        if self.client is not None:
            raise TransportError(f"{self.jid}: was started before; make a new agent")
        self._adopt_loop()
        raw = self.settings.fast and spade_patches.apply()
        self.client = MarketStream(
            str(self.jid),
            self.password,
            context=tls_context(self.settings.ca_file, self.settings.verify_certificate),
            register=auto_register and self.settings.register,
            raw=raw,
            on_message=self._arrived,
            on_error=self._returned,
            on_misaddressed=self._misaddressed,
        )
        self.presence = PresenceManager(agent=self, approve_all=False)
        self.link = Link(
            self.client,
            self.settings.servers,
            self.settings.policy,
            on_up=self._came_up,
            on_down=self._went_down,
        )
        try:
            await self._hook_plugin_before_connection()
            await self.link.open()
            await self._hook_plugin_after_connection()
            await self.setup()
        except BaseException:
            await self.link.close()
            raise
        if self._default is None:
            self.add_behaviour(UnmatchedMessages())
        self._alive.set()
        for behaviour in self.behaviours:
            if not behaviour.is_running:
                behaviour.start()
        early, self._early = self._early, []
        for message in early:
            self.dispatch(message)

    async def stop(self) -> None:
        """Say goodbye to the server and end all behaviours; what has been sent leaves first."""
        self._stopped = True
        if self.link is not None and self.link.is_up and self.presence is not None:
            self.presence.set_unavailable()
        for behaviour in list(self.behaviours):
            behaviour.kill()
        if self.web.is_started():
            await self.web.runner.cleanup()
        if self.link is not None:
            await self.link.close()
        self._connected.clear()
        self._alive.clear()
        self._finished.set()

    def fail(self, error: BaseException) -> None:
        """End the agent's work because of an error: `wait_finished` raises it; the first error counts."""
        if self._failure is None:
            self._failure = error
        self._finished.set()

    async def wait_finished(self) -> None:
        """Wait until the agent has been stopped.

        Raises:
            BaseException: what the agent failed of; it still has to be stopped then.
        """
        await self._finished.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def is_connected(self) -> bool:
        """Whether a session is open right now."""
        return self.link is not None and self.link.is_up

    async def wait_connected(self) -> None:
        """Wait until a session is open."""
        await self._connected.wait()

    def _came_up(self, resumed: bool, again: list[str]) -> None:
        if resumed:
            self.counters.resumed += 1
        else:
            self.counters.sessions += 1
            # With an explicit priority, and after every log-in: pyjabber otherwise prefers a dead session.
            self.presence.set_available()
        self._count_dropped(self._outbox.put_first(again))
        while (stanza := self._outbox.take()) is not None:
            self.client.post(stanza)
        self._connected.set()
        self.on_connected(resumed)

    def _went_down(self, reason: str) -> None:
        self.counters.disconnects += 1
        self._connected.clear()
        if not self._stopped:
            self.on_disconnected(reason)

    # -- messages out --------------------------------------------------------------------------------------------

    async def transmit(self, to: str, body: str, metadata: Mapping[str, str], thread: str) -> None:
        """Send a message; while disconnected it is kept (up to a limit) and leaves when the session is back.

        Args:
            to: bare address of the receiver, in our own domain unless federation is on.
            body: the document; not empty.
            metadata: FIPA parameters; at least one, none empty.
            thread: conversation id; "" for none.

        Raises:
            TransportError: a bad address, another domain, no body or no metadata, or the agent has been stopped.
            MalformedXml: a character that XML does not allow.
            DocumentTooLarge: over the size limit; nothing has been sent.
        """
        if self._stopped:
            raise TransportError(f"{self.jid}: has been stopped; message to {to} not sent")
        stanza = self._prepare(self._checked_address(to), body, metadata, thread).addressed(
            to=to,
            sender=str(self.jid),
            stanza_id=uuid.uuid4().hex,
            stanza_max_bytes=self.settings.stanza_max_bytes,
        )
        self.counters.sent += 1
        if self.is_connected:
            await self.client.writable()
        if self.is_connected:
            self.client.post(stanza)
        else:
            self._count_dropped(self._outbox.put(stanza))

    def _prepare(self, to: str, body: str, metadata: Mapping[str, str], thread: str) -> wire.PreparedMessage:
        """A message without its addresses; what was sent last is prepared already."""
        if self._last is not None and self._last[0] is body and self._last[1:3] == (metadata, thread):
            return self._last[3]
        prepared = wire.prepare_message(
            to=to, body=body, metadata=metadata, thread=thread, compress_from_bytes=self.settings.compress_from_bytes
        )
        self._last = body, dict(metadata), thread, prepared
        return prepared

    def _checked_address(self, to: str) -> str:
        bare = sender_of(to)
        if bare is None:
            raise TransportError(f"{to!a} is no XMPP address of the form user@domain in its prepared form")
        domain = bare.partition("@")[2]
        if domain != self.jid.domain and not self.settings.federation:
            raise TransportError(
                f"{to!r}: the domain {domain} is not {self.jid.domain}, and federation is switched off"
            )
        return to

    def _count_dropped(self, count: int) -> None:
        if count:
            self.counters.dropped += count
            _log.warning("%s: outbox full: the %d oldest messages were given up", self.jid, count)

    async def drain(self, limit_s: float = 5.0) -> bool:
        """Wait until the server has confirmed all that was sent.

        Returns:
            True where it has; False where it cannot say (no stream management) or did not in time.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.is_connected and self.client.acknowledging:
                    if not self.client.unacknowledged() and not len(self._outbox):
                        return True
                    self.client.request_acknowledgement()
                    await asyncio.sleep(0.01)
        return False

    # -- messages in ---------------------------------------------------------------------------------------------

    def _arrived(self, element: ElementTree.Element) -> None:
        if not self._admits(element):
            return
        try:
            incoming = wire.decode_element(element)
        except DocumentError as error:
            self.counters.refused += 1
            self.complain(element.get("from") or "", "message refused: %s (%d so far)", error, self.counters.refused)
            return
        except Exception as error:  # a bug in unpacking; slixmpp would write a traceback for every such message
            self.counters.faults += 1
            self.complain(element.get("from") or "", "message dropped: %s: %a", type(error).__name__, str(error)[:200])
            return
        if not incoming.body:
            return  # chat states and the like
        message = Message(to=self.jid, sender=incoming.sender_bare, body=incoming.body, thread=incoming.thread or None)
        message._metadata = incoming.metadata  # noqa: SLF001 (the constructor would check every field again)
        self.dispatch(message)

    def _returned(self, element: ElementTree.Element) -> None:
        if not self._admits(element):
            return
        try:
            bounce = wire.decode_bounce(element)
        except Exception as error:  # whatever it is, nothing depends on it
            self.counters.faults += 1
            self.complain(element.get("from") or "", "bounce dropped: %s: %a", type(error).__name__, str(error)[:200])
            return
        self.counters.bounced += 1
        self.on_bounce(bounce)

    def _admits(self, element: ElementTree.Element) -> bool:
        """Whether the sender's quota has room for a message; asked before anything of it is unpacked."""
        return self.admits(element.get("from", "").partition("/")[0])  # canonical: the stream drops all others

    def admits(self, sender: str) -> bool:
        """Whether a sender's quota has room for one more message; if so it counts.

        Args:
            sender: canonical bare address.
        """
        if self._quota.admits(sender, time.monotonic_ns() // 1000):
            return True
        self.counters.over_quota += 1
        self.complain(
            sender,
            "more than %d messages a second from %s; dropped unread (%d so far)",
            self.settings.quotas.messages_per_sender_per_second,
            sender,
            self.counters.over_quota,
        )
        return False

    def _misaddressed(self, source: str) -> None:
        self.counters.misaddressed += 1
        self.complain(
            source,
            "a stanza from %a dropped: that is no canonical address (%d so far)",
            source[:100],
            self.counters.misaddressed,
        )

    def complain(self, sender: str, text: str, *arguments: object) -> None:
        """Write a line to the log, but not more than one of a text a minute about a sender.

        Args:
            sender: whom it is about.
            text: with places for the arguments, as the logging module has them.
            arguments: what to put there.
        """
        if self._complaints.is_due(text, sender, time.monotonic_ns() // 1000):
            _log.warning("%s: " + text, self.jid, *arguments)

    def dispatch(self, msg: Any) -> list[asyncio.Task[None]]:
        """Hand a message to the behaviours whose templates match, else to the default behaviour.

        Unlike SPADE's this makes no tasks, keeps no trace, gives a message to one courier only, and loses none that
        comes before the behaviours run.
        """
        if not self.is_alive():
            if not self._stopped and len(self._early) < EARLY_MESSAGES_MAX:
                self._early.append(msg)
            return []
        claimed = carried = False
        for behaviour in self.behaviours:
            is_courier = isinstance(behaviour, Courier)
            if behaviour is self._default or (is_courier and carried) or not behaviour.match(msg):
                continue
            self._deposit(behaviour, msg)
            claimed = True
            carried = carried or is_courier
        if not claimed and self._default is not None:
            self._deposit(self._default, msg)
        return []

    def _deposit(self, behaviour: Any, message: Any) -> None:
        if behaviour.queue.qsize() < MAILBOX_MESSAGES_MAX:
            behaviour.queue.put_nowait(message)
        else:
            self.counters.refused += 1
            self.complain(str(message.sender), "%s is too busy; a message from %s given up", behaviour, message.sender)

    async def carry(self, message: Any) -> None:
        """Hand one message to `on_text`; couriers call it, one at a time."""
        async with self._carrying:
            self.counters.received += 1
            metadata = dict(message._metadata)  # noqa: SLF001 (SPADE has no accessor for all fields)
            await self.on_text(str(message.sender.bare), metadata, message.thread or "", message.body)

    # -- behaviours ----------------------------------------------------------------------------------------------

    def add_behaviour(self, behaviour: Any, template: BaseTemplate | None = None) -> None:
        """Add a behaviour; a courier brings its own template, and one that matches everything becomes the default."""
        if isinstance(behaviour, Courier):
            template = template or behaviour.message_template()
            if template is None:
                self._default = behaviour
        super().add_behaviour(behaviour, template)

    def remove_behaviour(self, behaviour: Any) -> None:
        """Remove a behaviour; SPADE calls this when one has ended, and one that died is reported here."""
        super().remove_behaviour(behaviour)
        if behaviour is self._default:
            self._default = None
        error = behaviour.exit_code
        if isinstance(error, Exception):
            self.on_behaviour_failed(type(behaviour).__name__, error)
