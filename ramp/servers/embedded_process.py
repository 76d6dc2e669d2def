"""The process of the embedded XMPP server: streams, log-in and stanzas of the clients of one market (RFC 6120).

A client encrypts its connection, registers an account with a token if it has none (`ramp.servers.accounts`), logs in
(SASL PLAIN) and gets an address. Then the server delivers its messages (`ramp.servers.embedded_router`) and answers its
pings. It serves one computer, and offers what a market's agents use: no rosters, no subscriptions to presence, no
rooms, no other servers.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import signal
import socket
import ssl
import sys
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast
from xml.parsers import expat

import uvloop

from ramp.errors import RampError
from ramp.runtime.clock import SystemClock
from ramp.runtime.logs import log_to_stderr
from ramp.servers import LOOPBACK
from ramp.servers.accounts import FEATURE, Accounts, Registration, take_accounts
from ramp.servers.embedded_router import Router, bounce
from ramp.xmpp.quotas import Complaints

STANZA_MAX_BYTES: Final = 262_144
"""Maximum stanza from a client in bytes, as in ejabberd and Prosody; a longer one ends the session."""

PIECE_BYTES: Final = 16_384
"""Bytes parsed at a time; one read may contain hundreds of stanzas, which must not count as one long stanza. Also the
maximum of an unfinished tag."""

DEPTH_MAX: Final = 100
NAMES_MAX: Final = 1_000
NAME_CHARACTERS_MAX: Final = 300
"""Maximum length of a name with its namespace, which the parser repeats with each element. It keeps all names of a
stream; agents use some fifty."""

LOG_IN_LIMIT_S: Final = 60.0
"""Maximum time in seconds from the connection to the log-in."""

UNREAD_BYTES_MAX: Final = 40_000_000
"""Maximum size of data that a client has not read yet; above `KEPT_BYTES_MAX`, which a client may get at once."""

_CLIENT: Final = "{jabber:client}"
_STREAM: Final = "http://etherx.jabber.org/streams}stream"
_TLS: Final = "urn:ietf:params:xml:ns:xmpp-tls"
_SASL: Final = "urn:ietf:params:xml:ns:xmpp-sasl"
_BIND: Final = "urn:ietf:params:xml:ns:xmpp-bind"
_END: Final = "</stream:stream>"

_complaints = Complaints()
_log = logging.getLogger(__name__)


class StreamParser:
    """Splits an XML stream into stanzas."""

    def __init__(
        self, opened: Callable[[], None], stanza: Callable[[ElementTree.Element], None], closed: Callable[[], None]
    ) -> None:
        self._opened = opened
        self._stanza = stanza
        self._closed = closed
        self._depth = 0
        self._bytes = self._fed = 0
        self._builder = ElementTree.TreeBuilder()
        parser = expat.ParserCreate("utf-8", "}")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse_document_type
        # otherwise versions from 2.6 on may hold back a stanza that comes in two pieces
        getattr(parser, "SetReparseDeferralEnabled", lambda _: None)(False)
        self._parser = parser

    def feed(self, data: bytes) -> None:
        """Parse what has come.

        Raises:
            ValueError: a stanza is too long, or the data are not an XMPP stream.
        """
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self._bytes += len(piece)
            self._fed += len(piece)
            if self._bytes > STANZA_MAX_BYTES:
                raise ValueError(f"a stanza of more than {STANZA_MAX_BYTES} bytes")
            try:
                self._parser.Parse(piece)
            except expat.ExpatError as error:
                raise ValueError(f"not an XMPP stream: {error}") from error
            if self._fed - self._parser.CurrentByteIndex > PIECE_BYTES:
                raise ValueError(f"a tag of more than {PIECE_BYTES} bytes")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        longest = max(map(len, (name, *attributes)))
        if self._depth > DEPTH_MAX or longest > NAME_CHARACTERS_MAX or len(self._parser.intern) > NAMES_MAX:
            raise ValueError("elements too deep, or names too long or too many")
        if self._depth > 1:
            self._builder.start(_clark(name), {_clark(key): value for key, value in attributes.items()})
        elif name == _STREAM:
            self._opened()
        else:
            raise ValueError("not an XMPP stream: it begins with another element")

    def _text(self, text: str) -> None:
        if self._depth > 1:
            self._builder.data(text)

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._closed()
            return
        self._builder.end(_clark(name))
        if self._depth == 1:
            element = self._builder.close()
            self._builder = ElementTree.TreeBuilder()
            self._bytes = 0
            self._stanza(element)

    def _refuse_document_type(self, *_: object) -> None:
        """Refuse DOCTYPE (RFC 6120, 11.1); this also excludes entities that expand without limit."""
        raise ValueError("not an XMPP stream: DOCTYPE is not allowed")


def _clark(name: str) -> str:
    """Return a name of expat's as ElementTree writes it: `{namespace}local`."""
    return f"{{{name}" if "}" in name else name


class Connection(asyncio.Protocol):
    """A client's connection, from its begin to the end of its session."""

    def __init__(self, accounts: Accounts, router: Router, context: ssl.SSLContext) -> None:
        self._accounts = accounts
        self._router = router
        self._context = context
        self._transport: asyncio.Transport
        self._registration = Registration(accounts, router.domain, SystemClock().now)
        self._is_encrypted = False
        self._encrypting: asyncio.Task[None] | None = None
        self._early = b""
        self._bare = self._address = self._resource = ""
        self._await_stream()

    def _await_stream(self) -> None:
        """Wait for the begin of a new stream; a stanza that comes before it ends the connection."""
        self._handle: Callable[[ElementTree.Element], None] = self._refuse
        self._stream = StreamParser(self._opened, self._stanza, self.close)

    def _stanza(self, element: ElementTree.Element) -> None:
        self._handle(element)

    # -- the connection (asyncio.Protocol) -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        asyncio.get_running_loop().call_later(LOG_IN_LIMIT_S, self._check_log_in)

    def _check_log_in(self) -> None:
        if not self._address and not self.is_closing():
            self.cut(f"no log-in within {LOG_IN_LIMIT_S:g} s")

    def data_received(self, data: bytes) -> None:
        if self._encrypting is not None:
            self._early += data
            return
        try:
            self._stream.feed(data)
        except ValueError as error:
            self.cut(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        self._handle = lambda _: None
        if self._encrypting is not None:
            self._encrypting.cancel()
        if self._address:
            self._router.gone(self._bare, self._resource)

    def close(self) -> None:
        """End the stream and the connection; what the client still sends is ignored."""
        self._handle = lambda _: None
        if not self.is_closing():
            self._write(_END)
            self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def cut(self, why: str) -> None:
        """End the connection at once; a regular close would wait for the client."""
        if _complaints.is_due("cut", self._bare, time.monotonic_ns() // 1000):
            _log.warning("%s: %s; connection closed", self._address or self._transport.get_extra_info("peername"), why)
        self._transport.abort()

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self.cut(f"more than {UNREAD_BYTES_MAX} bytes not read")

    def _write(self, text: str) -> None:
        self.write(text.encode())

    def _refuse(self, _: ElementTree.Element) -> None:
        self._fail("not-authorized")

    def _fail(self, condition: str) -> None:
        """End the stream with an error (RFC 6120, 4.9.3)."""
        self._write(f"<stream:error><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>")
        self.close()

    # -- before the session --------------------------------------------------------------------------------------

    def _opened(self) -> None:
        """Answer the begin of a stream by its next steps."""
        if not self._is_encrypted:
            self._handle, features = self._encrypt, f"<starttls xmlns='{_TLS}'><required/></starttls>"
        elif not self._address:
            self._handle = self._log_in
            features = f"<mechanisms xmlns='{_SASL}'><mechanism>PLAIN</mechanism></mechanisms>"
            if self._accounts.is_open(SystemClock().now()):
                features += FEATURE
        else:
            self._handle, features = self._bind, f"<bind xmlns='{_BIND}'/>"
        self._write(
            f"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='{uuid.uuid4()}' "
            f"from='{self._router.domain}' version='1.0' xml:lang='en'><stream:features>{features}</stream:features>"
        )

    def _encrypt(self, element: ElementTree.Element) -> None:
        if element.tag != f"{{{_TLS}}}starttls":
            self._refuse(element)
            return
        self._write(f"<proceed xmlns='{_TLS}'/>")
        self._await_stream()
        self._encrypting = asyncio.get_running_loop().create_task(self._encrypted())

    async def _encrypted(self) -> None:
        loop, plain = asyncio.get_running_loop(), self._transport
        try:
            transport = await loop.start_tls(plain, self, self._context, server_side=True)
        except OSError:
            plain.abort()
            return
        assert transport is not None
        self._transport, self._is_encrypted, self._encrypting = transport, True, None
        early, self._early = self._early, b""
        self.data_received(early)  # what came with the client's last step of the handshake

    def _log_in(self, element: ElementTree.Element) -> None:
        if element.tag == f"{_CLIENT}iq":
            answer, enough = self._registration.answer(element)
            self.write(answer)
            if enough:
                self.close()
        elif element.tag != f"{{{_SASL}}}auth":
            self._refuse(element)
        elif name := self._accounts.log_in(element.get("mechanism"), element.text):
            self._bare, self._resource = f"{name}@{self._router.domain}", str(uuid.uuid4())
            self._address = f"{self._bare}/{self._resource}"
            self._router.logged_in(self._bare, self._resource, self)
            self._write(f"<success xmlns='{_SASL}'/>")
            self._await_stream()
        else:
            self._write(f"<failure xmlns='{_SASL}'><not-authorized/></failure>")
            self.close()

    def _bind(self, element: ElementTree.Element) -> None:
        """Tell the client its address, and begin its session."""
        if element.tag != f"{_CLIENT}iq" or element.get("type") != "set" or element.find(f"{{{_BIND}}}bind") is None:
            self._refuse(element)
            return
        answer = ElementTree.Element("iq", {"type": "result", "id": element.get("id") or ""})
        bound = ElementTree.SubElement(answer, "bind", {"xmlns": _BIND})
        ElementTree.SubElement(bound, "jid").text = self._address
        self.write(ElementTree.tostring(answer))
        self._handle = self._take

    # -- the session ---------------------------------------------------------------------------------------------

    def _take(self, element: ElementTree.Element) -> None:
        """Handle a stanza of a session; one with another sender's address ends it (RFC 6120, 8.1.2.1)."""
        source = element.get("from", self._address)
        if source not in (self._address, self._bare):
            if _complaints.is_due("from", self._bare, time.monotonic_ns() // 1000):
                _log.warning("%s sends as %a: disconnected", self._address, source[:100])
            self._fail("invalid-from")
        elif element.tag == f"{_CLIENT}message":
            answer = self._router.deliver(element, self._address)
            if answer is not None:
                self.write(answer)
        elif element.tag == f"{_CLIENT}presence" and "to" not in element.attrib:
            available = element.get("type") != "unavailable"
            self._router.set_available(self._bare, self._resource, available)
        elif element.tag == f"{_CLIENT}iq" and element.get("type") in ("get", "set"):
            self.write(self._answer(element))

    def _answer(self, asked: ElementTree.Element) -> bytes:
        """Answer a ping of the server (XEP-0199), and refuse any other question."""
        asked.attrib.update({"from": self._address, "to": asked.get("to", self._router.domain)})
        if asked.get("to") != self._router.domain or asked.find("{urn:xmpp:ping}ping") is None:
            return bounce(asked, "service-unavailable")
        addresses = {"from": self._router.domain, "to": self._address}
        answer = ElementTree.Element("iq", {"type": "result", "id": asked.get("id") or "", **addresses})
        return bytes(ElementTree.tostring(answer))


def main(arguments: list[str] | None = None) -> int:
    """Run the server in this process until SIGTERM, SIGINT or the end of standard input, which gives its accounts.

    Returns:
        Exit status: 0 stopped, 1 the port is in use, 2 invalid arguments or accounts.
    """
    parser = argparse.ArgumentParser(prog="ramp.servers.embedded_process", description="Run the embedded XMPP server.")
    parser.add_argument("--host", default="localhost", help="XMPP domain of the agents (default: localhost)")
    parser.add_argument("--port", type=int, required=True, help="TCP port for clients, on 127.0.0.1")
    parser.add_argument("--state", type=Path, required=True, help="directory of registered accounts")
    parser.add_argument("--certificates", type=Path, required=True, help="directory of the server's certificate")
    options = parser.parse_args(arguments)
    log_to_stderr(logging.WARNING)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each client takes a descriptor
    try:
        uvloop.run(_serve(options.host, options.port, options.state, options.certificates))
    except RampError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"cannot listen on port {options.port}: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(domain: str, port: int, state_dir: Path, certificates: Path) -> None:
    accounts = Accounts(domain, state_dir / "registered.json")
    later = await take_accounts(accounts)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / f"{domain}_cert.pem", certificates / f"{domain}_key.pem")
    router = Router(domain, accounts.exists)
    accounts.closed = router.close
    watching = loop.create_task(later)
    watching.add_done_callback(lambda _: stop.set())
    await loop.create_server(
        lambda: Connection(accounts, router, context), host=LOOPBACK, port=port, family=socket.AF_INET, backlog=512
    )
    await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
