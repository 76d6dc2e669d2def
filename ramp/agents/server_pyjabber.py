"""pyjabber 0.4.5 made dependable: runs inside the embedded server's process only.

| defect of pyjabber | mended by |
|---|---|
| listens on the machine's public address and opens an admin page on :9090 | `serve` opens one listener on loopback |
| key and certificate in site-packages, signed with a key that is in the wheel | `ramp.agents.certificate` |
| pool of processes for key derivation: survives kill -9, hangs when forked at a bad moment | threads |
| a message to another domain ends the server | `Router.deliver` bounces it |
| the `from` of a message is believed | `Router.deliver` writes the authenticated address |
| a session that has died still gets the messages of its successor | `Router` knows living sessions only |
| messages kept for an absent agent are lost, or come in reverse order | `Router` keeps and delivers them in order |
| an error in a handler leaves the session deaf for ever | `Session.feed` answers and carries on |
| parsing takes quadratic time; no limit on a stanza | `Parser` |
| connections that end stay in the tables; a reused port number then writes into a dead line | `Connection` |

All of it leans on pyjabber's inside, so another version is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
import socket
import sys
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any
from xml import sax

import loguru
import pyjabber.server
import uvloop
from pyjabber import AppConfig
from pyjabber.db.database import DB
from pyjabber.db.model import Model
from pyjabber.features.presence.PresenceFeature import Presence
from pyjabber.features.SASL.SASL import SASL
from pyjabber.network.ConnectionManager import ConnectionManager
from pyjabber.network.parsers.XMLParser import XMLParser
from pyjabber.network.protocols.XMLProtocol import XMLProtocol
from pyjabber.plugins.xep_0363 import upload_server
from pyjabber.queues.QueueManager import QueueManager, QueueName
from pyjabber.server_parameters import Parameters
from pyjabber.stream.handlers.StanzaHandler import StanzaHandler
from sqlalchemy import select

from ramp.agents.certificate import ServerCertificate
from ramp.agents.server_process import LOOPBACK
from ramp.agents.server_router import Router
from ramp.errors import ConfigurationError

EXPECTED_VERSION = "0.4.5"
"""The pyjabber whose inside this module knows."""

STANZA_MAX_BYTES = 262_144
"""Longest stanza taken from a client, in bytes; ejabberd's and Prosody's limit. A longer one ends the session."""

LOGIN_THREADS = 4
"""Threads that derive keys at log-in; the derivation runs without Python's lock."""

KEY_ITERATIONS = 10_000
"""Rounds of PBKDF2 for a stored password, as in Prosody: passwords of agents are long random strings."""

_CLIENT = "{jabber:client}"

_log = logging.getLogger(__name__)


class _Discarding(asyncio.Queue[Any]):
    """Swallows what pyjabber's own router would have read; unread, the queue would only grow."""

    def put_nowait(self, item: Any) -> None:
        """Forget the item."""

    async def put(self, item: Any) -> None:
        """Forget the item."""


class Session(StanzaHandler):  # type: ignore[misc]
    """What happens to the stanzas of one logged-in client."""

    router: Router  # of the running server

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.router.bound(self._jid.bare(), self._jid.resource, transport)

    async def feed(self, element: ElementTree.Element) -> None:
        """Handle one stanza; whatever goes wrong, the session goes on (pyjabber's stays open and deaf)."""
        try:
            handler = self._functions.get(element.tag)
            if handler is not None:
                await handler(element)
        except Exception as error:  # pyjabber's handlers raise anything on stanzas they do not expect
            _log.warning("a %s from %s is not understood: %r", element.tag, self._jid, error)
            if element.tag == f"{_CLIENT}iq" and element.get("type") in ("get", "set"):
                self._transport.write(_iq_error(element))

    async def handle_msg(self, element: ElementTree.Element) -> None:
        """Deliver a message, under the address that the client logged in with."""
        answer = await self.router.deliver(element, str(self._jid))
        if answer is not None:
            self._transport.write(answer)

    async def handle_pre(self, element: ElementTree.Element) -> None:
        """Take note of presence: an available client gets what was kept for it."""
        await super().handle_pre(element)
        if "to" not in element.attrib:
            available = element.get("type") != "unavailable"
            self.router.set_available(self._jid.bare(), self._jid.resource, available)


def _iq_error(element: ElementTree.Element) -> bytes:
    answer = ElementTree.Element(f"{_CLIENT}iq", {"type": "error", "id": element.get("id") or ""})
    error = ElementTree.SubElement(answer, f"{_CLIENT}error", {"type": "cancel"})
    ElementTree.SubElement(error, "{urn:ietf:params:xml:ns:xmpp-stanzas}internal-server-error")
    return bytes(ElementTree.tostring(answer))


class Parser(XMLParser):  # type: ignore[misc]
    """Joins text once an element (pyjabber adds character by character) and watches the size of stanzas."""

    def __init__(self, transport: asyncio.Transport, protocol: Connection) -> None:
        super().__init__(transport, protocol, stanza_handler=Session)
        self._pieces: list[str] = []

    def startElementNS(self, name: Any, qname: Any, attrs: Any) -> None:  # noqa: N802 (SAX's name)
        """An element begins."""
        self._join()
        super().startElementNS(name, qname, attrs)

    def endElementNS(self, name: Any, qname: Any) -> None:  # noqa: N802 (SAX's name)
        """An element ends."""
        self._join()
        super().endElementNS(name, qname)
        if len(self._stack) <= 1:
            self._protocol.stanza_bytes = 0

    def characters(self, content: str) -> None:
        """Text, in pieces as the XML library finds them."""
        self._pieces.append(content)

    def _join(self) -> None:
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            if self._stack:
                super().characters(text)


class _NoDocumentType(sax.handler.LexicalHandler):
    """Refuses DOCTYPE, as RFC 6120 (11.1) demands; with it go entities that unfold without end."""

    def startDTD(self, name: str, public_id: str | None, system_id: str | None) -> None:  # noqa: N802 (SAX's name)
        """A document type declaration begins."""
        raise sax.SAXException("DOCTYPE is not allowed in an XMPP stream")


class Connection(XMLProtocol):  # type: ignore[misc]
    """One client's connection: like pyjabber's, but it tidies up after itself."""

    def __init__(self) -> None:
        super().__init__(namespace="jabber:client", connection_timeout=0)
        self.stanza_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        self._peer = transport.get_extra_info("peername")
        line = transport.get_extra_info("socket")
        if line is not None:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = transport
        self._xml_parser: Any = sax.make_parser()  # noqa: S317 (entities and document types are refused below)
        self._xml_parser.setFeature(sax.handler.feature_namespaces, True)
        self._xml_parser.setFeature(sax.handler.feature_external_ges, False)
        self._xml_parser.setProperty(sax.handler.property_lexical_handler, _NoDocumentType())
        self._xml_parser.setContentHandler(Parser(transport, self))
        self._connection_manager.connection(self._peer, transport)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._xml_parser is None or self._transport is None:
            return
        self.stanza_bytes += len(data)
        if self.stanza_bytes > STANZA_MAX_BYTES:
            self._hang_up(f"a stanza of more than {STANZA_MAX_BYTES} bytes")
            return
        try:
            self._xml_parser.feed(data)
        except Exception as error:  # SAX errors, and pyjabber's bare Exception for wrong nesting
            self._hang_up(f"not an XMPP stream: {error or type(error).__name__}")

    def _hang_up(self, reason: str) -> None:
        """Cut the line; a polite end would wait until the client has sent all of what is too much."""
        _log.warning("%s: %s; connection closed", self._peer, reason)
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone: forget its connection, and tell whoever follows its presence."""
        if self._xml_parser is not None:
            self._xml_parser.getContentHandler().cancel_queue_bridge()
        self._xml_parser = None
        self._transport = None
        # pyjabber has no method for it: its own close() writes into the dead line
        tables: Any = self._connection_manager
        client = tables._peerList.pop(self._peer, None)  # noqa: SLF001
        jid = client.jid if client is not None else tables._orphan_jids.pop(self._peer, None)  # noqa: SLF001
        if jid is not None and jid.resource:
            Session.router.gone(jid.bare(), jid.resource)
            task = asyncio.get_running_loop().create_task(_announce_absence(self._presence_manager, jid))
            _running.add(task)
            task.add_done_callback(_running.discard)


_running: set[asyncio.Task[None]] = set()


async def _announce_absence(presence: Any, jid: Any) -> None:
    try:
        await presence.feed(jid, ElementTree.Element(f"{_CLIENT}presence", {"type": "unavailable"}))
    except Exception:
        _log.exception("the absence of %s could not be announced", jid)
    statuses = presence._online_status  # noqa: SLF001 (pyjabber never forgets a session's last status)
    remaining = [status for status in statuses.get(jid.bare(), []) if status[0] != jid.resource]
    if remaining:
        statuses[jid.bare()] = remaining
    else:
        statuses.pop(jid.bare(), None)


def _mend_accounts() -> None:
    """Registrations one at a time, and a key derivation as long as Prosody's.

    pyjabber looks whether an account exists and later inserts it, with 100,000 rounds of key derivation in between.
    """
    register, derive = SASL.handle_iq, SASL._hash_scram_async  # noqa: SLF001 (mended where they are)
    lock = asyncio.Lock()

    async def handle_iq(self: Any, element: ElementTree.Element) -> None:
        async with lock:
            await register(self, element)

    async def derive_key(self: Any, password: str, salt: bytes, iterations: int) -> Any:
        return await derive(self, password, salt, min(iterations, KEY_ITERATIONS))

    SASL.handle_iq = handle_iq
    SASL._hash_scram_async = derive_key  # noqa: SLF001


async def _account_exists(user: str) -> bool:
    async with await DB.connection_async() as connection:
        found = await connection.execute(select(Model.Credentials.c.id).where(Model.Credentials.c.jid == user))
        return found.first() is not None


def serve(domain: str, port: int, state_dir: Path, certificate: ServerCertificate) -> None:
    """Run the server until SIGTERM or SIGINT; what it leaves running is for the process's end to sweep away.

    Args:
        domain: XMPP domain of the agents.
        port: TCP port on loopback.
        state_dir: where accounts are kept.
        certificate: the server's certificate, in files named as pyjabber expects.

    Raises:
        ConfigurationError: pyjabber has another version than this module knows.
        OSError: the port is taken.
    """
    installed = metadata.version("pyjabber")
    if installed != EXPECTED_VERSION:
        raise ConfigurationError(
            f"the embedded server needs pyjabber {EXPECTED_VERSION}, installed is {installed}; "
            "install that version, or use another XMPP server"
        )
    loguru.logger.remove()
    loguru.logger.add(sys.stderr, level="WARNING", diagnose=False)  # diagnose would print passwords and documents
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    shutil.rmtree(upload_server.TEMP_DIR, ignore_errors=True)  # made at import, for an upload service not run here
    # Not asyncio.run: at the end it cancels what is left and waits for it, and some of pyjabber's tasks of lines just
    # closed swallow their cancellation; the server would stay for ever, and its state directory's lock with it.
    uvloop.new_event_loop().run_until_complete(_serve(domain, port, state_dir, certificate))


async def _serve(domain: str, port: int, state_dir: Path, certificate: ServerCertificate) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    pyjabber.server.ProcessPoolExecutor = lambda _: ThreadPoolExecutor(LOGIN_THREADS)
    pyjabber.server.setup_query_local_ip = lambda: LOOPBACK
    QueueManager._queues.update({name: _Discarding() for name in QueueName})  # noqa: SLF001
    pyjabber.server.Server(
        Parameters(
            host=domain,
            client_port=port,
            connection_timeout=0,
            database_path=str(state_dir / "accounts.sqlite"),
            cert_path=str(certificate.certificate_file.parent),
            message_persistence=False,
        )
    )
    AppConfig.app_config.ssl_context.minimum_version = 771  # TLS 1.2
    Session.router = Router(domain, _account_exists)
    _mend_accounts()
    await DB.setup_database()
    await Presence().get_all_pending_presence()
    listener = await loop.create_server(Connection, host=LOOPBACK, port=port, family=socket.AF_INET, backlog=512)
    try:
        await stop.wait()
    finally:
        listener.close()
        for client in list(ConnectionManager()._peerList.values()):  # noqa: SLF001
            with contextlib.suppress(Exception):
                client.transport.close()
        await asyncio.sleep(0)
        AppConfig.app_config.process_pool_exe.shutdown(wait=False, cancel_futures=True)
        await DB.close_engine_async()
