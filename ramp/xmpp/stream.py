"""One agent's XMPP stream, based on slixmpp's client.

Additions to slixmpp: outgoing stanzas as text that still count for stream management (XEP-0198), incoming chat messages
read directly from the XML, flow control, and one TLS context for the process.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slixmpp import ClientXMPP

from ramp.errors import ConfigurationError
from ramp.xmpp.address import is_canonical, sender_of

ACK_WINDOW = 25
"""Stanzas between two requests for acknowledgement (XEP-0198); also the maximum sent twice after a lost connection."""

_MESSAGE_TAG = "{jabber:client}message"
_STANZA_TAGS = frozenset({_MESSAGE_TAG, "{jabber:client}iq", "{jabber:client}presence"})
_SEQUENCE_MODULUS = 2**32  # XEP-0198, 4: counters wrap at 32 bits

_log = logging.getLogger(__name__)


class _CountedText(str):
    """A message stanza as text that stream management has not counted yet."""

    __slots__ = ()


@functools.lru_cache(maxsize=8)
def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return the TLS context that all streams of this process with the same trust share.

    Args:
        ca_file: PEM file of the only trusted authorities; None trusts those of the system.

    Raises:
        ConfigurationError: the file is missing or contains no certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"cannot read the certificate authority: {error}", path=ca_file) from None
    return context


def _is_addressed(xml: ElementTree.Element) -> bool:
    """Return whether a stanza has a canonical sender: an account for a message; otherwise also the server or none."""
    source = xml.get("from")
    if xml.tag == _MESSAGE_TAG:
        return sender_of(source) is not None
    return source is None or is_canonical(source)


class TlsClient(ClientXMPP):  # type: ignore[misc]
    """slixmpp's client for a server that offers STARTTLS on one port; tells when a TLS handshake has ended."""

    def __init__(self, jid: str, password: str, context: ssl.SSLContext) -> None:
        super().__init__(jid, password, ssl_context=context)
        self.enable_direct_tls = False
        self._tls_settled = asyncio.Event()
        self._tls_settled.set()

    async def start_tls(self) -> bool:
        self._tls_settled.clear()
        try:
            return bool(await super().start_tls())
        finally:
            self._tls_settled.set()

    async def tls_settled(self) -> None:
        """Wait for the end of the TLS handshake; slixmpp reports its problem after the disconnection."""
        await self._tls_settled.wait()

    async def drop(self) -> None:
        """Abort any connection or attempt and wait until it has ended."""
        self.cancel_connection_attempt()
        if self.transport is not None:
            gone = self.disconnected
            self.abort()
            await asyncio.wait([gone], timeout=2.0)

    def close_sender(self) -> None:
        """End slixmpp's sending task, which would outlive the stream."""
        task: Any = self._run_out_filters
        if task is not None:
            task.cancel()


class MarketStream(TlsClient):
    """The client of one agent.

    Args:
        on_message: called with each arriving `message` element.
        on_misaddressed: called with the `from` of each stanza dropped because that is not a canonical address.
    """

    def __init__(
        self,
        jid: str,
        password: str,
        *,
        context: ssl.SSLContext,
        on_message: Callable[[ElementTree.Element], None],
        on_misaddressed: Callable[[str], None],
    ) -> None:
        super().__init__(jid, password, context)
        self.auto_authorize = None  # nobody learns whether an agent is there: subscriptions to presence stay unanswered
        self.auto_subscribe = False
        self._on_message = on_message
        self._on_misaddressed = on_misaddressed
        self._writable = asyncio.Event()
        self._writable.set()
        self.tls_refused = False
        self.add_event_handler("ssl_invalid_chain", self._distrust)
        self.register_plugin("xep_0199")  # answers pings, and lets the link ping the server
        self.register_plugin("xep_0198", {"window": ACK_WINDOW})

    def forget_login_attempts(self) -> None:
        """Allow all log-in mechanisms again; slixmpp remembers those of a connection lost during the log-in."""
        self["feature_mechanisms"].attempted_mechs = set()

    def _distrust(self, error: object) -> None:
        _log.error("%s: the server's certificate is not trusted: %s", self.boundjid.bare, error)
        self.tls_refused = True

    # -- messages in ---------------------------------------------------------------------------------------------

    def _spawn_event(self, xml: ElementTree.Element) -> None:
        if xml.tag in _STANZA_TAGS and not _is_addressed(xml):
            self._count_handled()
            self._on_misaddressed(xml.get("from") or "")
        elif xml.tag != _MESSAGE_TAG:
            super()._spawn_event(xml)
        else:
            self._count_handled()
            self._take(xml)

    def _count_handled(self) -> None:
        """Count a received stanza for stream management that slixmpp does not see."""
        management = self["xep_0198"]
        if management.enabled_in:
            management.handled = (management.handled + 1) % _SEQUENCE_MODULUS

    def _take(self, xml: ElementTree.Element) -> None:
        try:
            self._on_message(xml)
        except Exception:  # the stream must outlive any message
            _log.exception("%s: a message from %s could not be processed", self.boundjid.bare, xml.get("from"))

    # -- messages out --------------------------------------------------------------------------------------------

    def send_text(self, stanza: str) -> None:
        """Write a message stanza, an XML text; only while the session is open."""
        if self.waiting_queue.empty():
            self.send_raw(_CountedText(stanza))
        else:  # after stanzas that slixmpp has queued, such as those resent after a resumption
            self.waiting_queue.put_nowait((_CountedText(stanza), False))

    def send_raw(self, data: str | bytes) -> None:
        # counts message texts for stream management as slixmpp counts its stanza objects
        if type(data) is not _CountedText:
            super().send_raw(data)
            return
        text = str(data)
        management = self["xep_0198"]
        if not management.enabled_out:
            super().send_raw(text)
            return
        management.seq = (management.seq + 1) % _SEQUENCE_MODULUS
        management.unacked_queue.append((management.seq, text))
        super().send_raw(text)
        management.window_counter -= 1
        if management.window_counter <= 0:
            management.window_counter = management.window
            management.request_ack()

    def unacknowledged(self) -> list[str]:
        """Return the unconfirmed message stanzas, oldest first; an empty list without stream management."""
        return [stanza for _, stanza in self["xep_0198"].unacked_queue if isinstance(stanza, str)]

    @property
    def acknowledging(self) -> bool:
        """Whether the server confirms what it receives (XEP-0198 is on)."""
        return bool(self["xep_0198"].enabled_out)

    def request_acknowledgement(self) -> None:
        """Ask the server to confirm what it has received, if it does."""
        if self.transport is not None and self.acknowledging:
            self["xep_0198"].request_ack()

    # -- flow control (asyncio.BaseProtocol) ---------------------------------------------------------------------

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exception: BaseException | None) -> None:
        self._writable.set()
        super().connection_lost(exception)

    async def writable(self) -> None:
        """Wait until the connection takes more data."""
        if not self._writable.is_set():
            await self._writable.wait()
