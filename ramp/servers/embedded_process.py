"""pyjabber 0.4.5 with its defects fixed; runs only in the embedded server's process.

| defect of pyjabber | fix |
|---|---|
| listens on the machine's public address and opens an admin page on :9090 | `serve` opens one listener on loopback |
| key and certificate in site-packages, signed with a public key pair of the wheel | `ramp.servers.certificate` |
| process pool for key derivation: survives kill -9, may hang after a fork | one unused thread |
| a message to another domain ends the server | `Router.deliver` bounces it |
| anyone can create an account, also `bank@localhost/evil` or `BANK` | `_close_accounts`, `ramp.servers.accounts` |
| it trusts the `from` of a stanza | `Session.feed` sets the authenticated address and disconnects senders of others |
| it uses the address of a presence as a pattern that may match any account | `_exact_sessions` |
| a dead session receives the messages of its successor | `Router` knows open sessions only |
| messages for an offline agent are lost or arrive in reverse order | `Router` keeps and delivers them in order |
| after an error in a handler the session ignores all stanzas | `Session.feed` answers and continues |
| parsing takes quadratic time; no limit on a stanza | `Parser`, `Connection` |
| closed connections stay in the tables and match a reused port number | `Connection` |

The fixes depend on pyjabber's internals, so other versions are refused.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
import types
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any
from xml import sax

import loguru
import uvloop

from ramp.errors import ConfigurationError, RampError
from ramp.runtime.clock import SystemClock
from ramp.runtime.logs import log_to_stderr
from ramp.servers import LOOPBACK
from ramp.servers.accounts import AccountLine, Accounts
from ramp.servers.embedded_registration import FEATURE, Registration
from ramp.servers.embedded_router import Router
from ramp.xmpp.quotas import Complaints


class _Off:
    """Replaces a service that is off; pyjabber's server makes one of each and starts none."""

    def __init__(self, *_: object) -> None: ...

    def get_aiohttp_webapp(self) -> None:
        pass


# alembic and aiohttp would take 0.3 s and 25 MB, cryptography 11 MB; they would make a scratch directory
_SERVICES: dict[str, dict[str, Any]] = {
    "alembic": {"command": None},
    "alembic.config": {"Config": None},
    "pyjabber.network.CertGenerator": {"check_hostname_cert_exists": lambda *_: True},
    "pyjabber.http_server": {"HttpServer": _Off},
    "pyjabber.plugins.xep_0363.upload_server": {"UploadHttpServer": _Off},
    "pyjabber.webpage.adminPage": {"api_adminpage_app": _Off},
}
_stand_ins = _SERVICES.keys() - sys.modules.keys()
for _name in _stand_ins:
    sys.modules[_name] = types.ModuleType(_name)
    sys.modules[_name].__dict__.update(_SERVICES[_name])

import pyjabber.server  # noqa: E402 (after the stand-ins)
from pyjabber import AppConfig  # noqa: E402 (after the stand-ins)
from pyjabber.db.database import DB  # noqa: E402 (after the stand-ins)
from pyjabber.features.Features import SASL_feature  # noqa: E402 (after the stand-ins)
from pyjabber.features.presence.PresenceFeature import Presence  # noqa: E402 (after the stand-ins)
from pyjabber.features.SASL.SASL import SASL  # noqa: E402 (after the stand-ins)
from pyjabber.features.SASL.utils import success_response  # noqa: E402 (after the stand-ins)
from pyjabber.network.ConnectionManager import ConnectionManager  # noqa: E402 (after the stand-ins)
from pyjabber.network.parsers.XMLParser import XMLParser  # noqa: E402 (after the stand-ins)
from pyjabber.network.protocols.XMLProtocol import XMLProtocol  # noqa: E402 (after the stand-ins)
from pyjabber.queues.QueueManager import QueueManager, QueueName  # noqa: E402 (after the stand-ins)
from pyjabber.server_parameters import Parameters  # noqa: E402 (after the stand-ins)
from pyjabber.stanzas.error import StanzaError  # noqa: E402 (after the stand-ins)
from pyjabber.stream.handlers.StanzaHandler import StanzaHandler  # noqa: E402 (after the stand-ins)
from pyjabber.stream.JID import JID  # noqa: E402 (after the stand-ins)
from pyjabber.stream.negotiators.StreamNegotiator import StreamNegotiator  # noqa: E402 (after the stand-ins)
from pyjabber.stream.utils.Enums import Stage  # noqa: E402 (after the stand-ins)

for _name in _stand_ins:
    del sys.modules[_name]

EXPECTED_VERSION = "0.4.5"
"""The version of pyjabber whose internals this module uses."""

STANZA_MAX_BYTES = 262_144
"""Maximum stanza from a client in bytes, as in ejabberd and Prosody; a longer one ends the session."""

PIECE_BYTES = 16_384
"""Bytes parsed at a time; one read may contain hundreds of stanzas, which must not count as one long stanza."""

_CLIENT = "{jabber:client}"
_INVALID_FROM = (
    b"<stream:error><invalid-from xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"  # RFC 6120, 4.9.3.9
)

_log = logging.getLogger(__name__)


class _Discarding(asyncio.Queue[Any]):
    """Discards items for pyjabber's own router, which does not run; the queue would grow without limit."""

    def put_nowait(self, item: Any) -> None:
        pass

    async def put(self, item: Any) -> None:
        pass


class Session(StanzaHandler):  # type: ignore[misc]
    """Handles the stanzas of one logged-in client."""

    router: Router  # of the running server
    _complaints = Complaints()

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.router.bound(self._jid.bare(), self._jid.resource, transport)

    async def feed(self, element: ElementTree.Element) -> None:
        """Handle one stanza under the address with which the client has logged in.

        Errors do not end the session (pyjabber would then ignore all stanzas). A stanza with the address of another
        sender does (RFC 6120, 8.1.2.1).
        """
        if element.get("from", str(self._jid)) not in (str(self._jid), self._jid.bare()):
            if self._complaints.is_due("from", self._jid.bare(), time.monotonic_ns() // 1000):
                _log.warning("%s sends as %a: disconnected", self._jid, element.get("from", "")[:100])
            self._transport.write(_INVALID_FROM)
            self._connections.close(self._peername)
            return
        element.set("from", str(self._jid))
        try:
            handler = self._functions.get(element.tag)
            if handler is not None:
                await handler(element)
        except Exception as error:  # pyjabber's handlers raise any exception on unexpected stanzas
            _log.warning("cannot handle a %s from %s: %s: %s", element.tag, self._jid, type(error).__name__, error)
            if element.tag == f"{_CLIENT}iq" and element.get("type") in ("get", "set"):
                self._transport.write(_iq_error(element))

    async def handle_msg(self, element: ElementTree.Element) -> None:
        answer = self.router.deliver(element, str(self._jid))
        if answer is not None:
            self._transport.write(answer)

    async def handle_pre(self, element: ElementTree.Element) -> None:
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
    """Joins the text of an element once (pyjabber appends each character) and resets the size count of stanzas."""

    def __init__(self, transport: asyncio.Transport, protocol: Connection) -> None:
        super().__init__(transport, protocol, stanza_handler=Session)
        self._pieces: list[str] = []
        self.registration: Registration | None = None

    def startElementNS(self, name: Any, qname: Any, attrs: Any) -> None:  # noqa: N802 (SAX's name)
        self._join()
        super().startElementNS(name, qname, attrs)

    def endElementNS(self, name: Any, qname: Any) -> None:  # noqa: N802 (SAX's name)
        self._join()
        super().endElementNS(name, qname)
        if len(self._stack) <= 1:
            self._protocol.stanza_bytes = 0

    def characters(self, content: str) -> None:
        self._pieces.append(content)

    def _join(self) -> None:
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            if self._stack:
                super().characters(text)


class _NoDocumentType(sax.handler.LexicalHandler):
    """Refuses DOCTYPE, as RFC 6120, 11.1, requires; this also excludes entities that expand without limit."""

    def startDTD(self, name: str, public_id: str | None, system_id: str | None) -> None:  # noqa: N802 (SAX's name)
        raise sax.SAXException("DOCTYPE is not allowed in an XMPP stream")


class Connection(XMLProtocol):  # type: ignore[misc]
    """A client's connection that removes itself from pyjabber's tables when it ends."""

    def __init__(self) -> None:
        super().__init__(namespace="jabber:client", connection_timeout=0)
        self.stanza_bytes = 0

    def connection_made(self, transport: Any) -> None:
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
        if self._xml_parser is None or self._transport is None:
            return
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self.stanza_bytes += len(piece)
            if self.stanza_bytes > STANZA_MAX_BYTES:
                self._hang_up(f"a stanza of more than {STANZA_MAX_BYTES} bytes")
                return
            try:
                self._xml_parser.feed(piece)
            except Exception as error:  # SAX errors, and pyjabber's bare Exception for wrong nesting
                self._hang_up(f"not an XMPP stream: {error or type(error).__name__}")
                return

    def _hang_up(self, reason: str) -> None:
        """Abort the connection; a regular close would wait for the rest of the client's data."""
        _log.warning("%s: %s; connection closed", self._peer, reason)
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the client's connection and announce its absence to its contacts."""
        if self._xml_parser is not None:
            self._xml_parser.getContentHandler().cancel_queue_bridge()
        self._xml_parser = None
        self._transport = None
        # pyjabber has no method for this: its close() writes to the closed connection
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
        _log.exception("cannot announce the absence of %s", jid)
    statuses = presence._online_status  # noqa: SLF001 (pyjabber never forgets a session's last status)
    remaining = [status for status in statuses.get(jid.bare(), []) if status[0] != jid.resource]
    if remaining:
        statuses[jid.bare()] = remaining
    else:
        statuses.pop(jid.bare(), None)


def _close_accounts(accounts: Accounts) -> None:
    """Allow registration only with a token, and log-in only to an account under exactly its name."""
    clock = SystemClock()

    async def register(self: Any, element: ElementTree.Element) -> None:
        parser = self._parser
        if parser.registration is None:
            parser.registration = Registration(accounts, AppConfig.app_config.host, clock.now)
        answer, enough = parser.registration.answer(element)
        self._transport.write(answer)
        if enough:
            self._connection_manager.close(self._peer)

    async def offer(self: Any, _: object) -> None:
        """Offer log-in and, while any token is usable, registration; replaces pyjabber's method."""
        self._stream_feature.reset()
        if accounts.is_open(clock.now()):
            self._stream_feature.register(ElementTree.Element(FEATURE))
        self._stream_feature.register(SASL_feature())
        self._transport.write(self._stream_feature.to_bytes())
        self._stage = Stage.SASL

    async def log_in(self: Any, element: ElementTree.Element) -> Stage | None:
        """Log in under the account's name, not the client's own; replaces pyjabber's method."""
        name = accounts.log_in(element.get("mechanism"), element.text)
        if name is None:
            self._transport.write(StanzaError.not_authorized_sasl())
            self._connection_manager.close(self._peer)
            return None
        self._connection_manager.set_jid(self._peer, JID(user=name, domain=AppConfig.app_config.host))
        self._transport.write(success_response())
        self._parser.reset_stack()
        self._transport.resume_reading()
        return Stage.AUTH

    def hang_up(name: str) -> None:
        tables = ConnectionManager()
        for peer, client in list(tables._peerList.items()):  # noqa: SLF001
            if client.jid is not None and client.jid.user == name:
                tables.close(peer)

    SASL.handle_iq = register
    SASL.handle_auth = log_in
    StreamNegotiator._handle_init_ssl = offer  # noqa: SLF001
    accounts.closed = hang_up


def _exact_sessions() -> None:
    """Make an address match only the account or session that it names."""

    def sessions(self: Any, jid: JID) -> list[Any]:
        """Return the connections of exactly this account, or of exactly this session if the address names one."""
        living = [client for client in self._peerList.values() if client.jid is not None]
        return [
            client
            for client in living
            if client.jid.bare() == jid.bare() and (not jid.resource or client.jid.resource == jid.resource)
        ]

    ConnectionManager.get_transport = sessions
    ConnectionManager.get_transport_online = lambda self, jid: [c for c in sessions(self, jid) if c.online]


def main(arguments: list[str] | None = None) -> int:
    """Run the server in this process until SIGTERM or SIGINT, with the accounts from standard input.

    Only the end of the process stops its remaining tasks.

    Returns:
        Exit status: 0 stopped, 1 the port is in use, 2 invalid arguments or accounts, or a wrong version of pyjabber.
    """
    parser = argparse.ArgumentParser(prog="ramp.servers.embedded_process", description="Run the embedded XMPP server.")
    parser.add_argument("--host", default="localhost", help="XMPP domain of the agents (default: localhost)")
    parser.add_argument("--port", type=int, required=True, help="TCP port for clients, on 127.0.0.1")
    parser.add_argument("--state", type=Path, required=True, help="directory of rosters and registered accounts")
    parser.add_argument("--certificates", type=Path, required=True, help="directory of the server's certificate")
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except RampError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"cannot listen on port {options.port}: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    installed = metadata.version("pyjabber")
    if installed != EXPECTED_VERSION:
        raise ConfigurationError(
            f"wrong version of pyjabber: got {installed}, expected {EXPECTED_VERSION}; "
            "install that version, or use another XMPP server"
        )
    loguru.logger.remove()
    loguru.logger.add(sys.stderr, level="WARNING", diagnose=False)  # diagnose would print passwords and documents
    log_to_stderr(logging.WARNING)
    # Not asyncio.run: it cancels the remaining tasks and waits for them, and some of pyjabber's tasks of closed
    # connections ignore their cancellation. The server would never end nor release the lock of its state directory.
    uvloop.new_event_loop().run_until_complete(_serve(options.host, options.port, options.state, options.certificates))


async def _serve(domain: str, port: int, state_dir: Path, certificates: Path) -> None:
    accounts = Accounts(domain, state_dir / "registered.json")
    line = AccountLine(accounts)
    loop = asyncio.get_running_loop()
    lines = await line.open()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    pyjabber.server.ProcessPoolExecutor = lambda _: ThreadPoolExecutor(1)
    pyjabber.server.setup_query_local_ip = lambda: LOOPBACK
    QueueManager._queues.update({name: _Discarding() for name in QueueName})  # noqa: SLF001
    pyjabber.server.Server(
        Parameters(
            host=domain,
            client_port=port,
            connection_timeout=0,
            database_path=str(state_dir / "rosters.sqlite"),
            cert_path=str(certificates),
            message_persistence=False,
            plugins=[name for name in Parameters().plugins if name != "jabber:iq:register"],
        )
    )
    AppConfig.app_config.ssl_context.minimum_version = 771  # TLS 1.2
    Session.router = Router(domain, accounts.exists)
    _close_accounts(accounts)
    _exact_sessions()
    await DB.setup_database()
    await Presence().get_all_pending_presence()
    watching = loop.create_task(line.watch(lines))
    listener = await loop.create_server(Connection, host=LOOPBACK, port=port, family=socket.AF_INET, backlog=512)
    try:
        await stop.wait()
    finally:
        watching.cancel()
        listener.close()
        for client in list(ConnectionManager()._peerList.values()):  # noqa: SLF001
            with contextlib.suppress(Exception):
                client.transport.close()
        await asyncio.sleep(0)
        AppConfig.app_config.process_pool_exe.shutdown(wait=False, cancel_futures=True)
        await DB.close_engine_async()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads and tasks of open connections must not delay the exit, see `_run`
