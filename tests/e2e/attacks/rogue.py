"""A rogue party: an XMPP client that says whatever a test wants, on any server that the market runs on.

    rogue = await connect(server, "mallory")
    await rogue.send("bank@localhost", "<junk/>", {"performative": "request"}, "thread-1")
    answer = await rogue.next()
    await rogue.close()

`server` is a `ServerProcess`, or `door(market)` for the server of a market that is up; the account is one that the
server was given (`server.ensure_accounts`, or `accounts=["mallory"]` in the market's configuration). Whoever wants
certified rogues lets the market's own key store certify `mallory@localhost`. `Entrance` is for what comes before a
log-in.
"""

import asyncio
import base64
import contextlib
import re
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape, quoteattr

from slixmpp import ClientXMPP

from ramp.model.acl import EncodedMessage
from ramp.xmpp import wire
from tests.waiting import LIMIT_S

REQUEST = {"performative": "request"}
_HEADER = (
    "<stream:stream to='{domain}' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
)


@dataclass(frozen=True)
class Door:
    """How to reach a server, and the passwords of its accounts."""

    host: str
    port: int
    ca_file: Path
    domain: str
    accounts: dict[str, str]


def door(market: Any) -> Door:
    """The server of a market (`swarm_market.Market`) that is up."""
    server = market.status()["server"]
    return Door(
        server["host"], server["port"], market.state.server / "tls" / "ca.pem", "localhost", market.state.passwords([])
    )


def trusting(server: Any) -> ssl.SSLContext:
    """A TLS context that trusts a server's own authority only."""
    return ssl.create_default_context(cafile=str(server.ca_file))


@dataclass(frozen=True)
class Bounce:
    """An error stanza, and whom it comes from."""

    peer: str


class Rogue:
    """One session; see `connect`.

    Attributes:
        client: slixmpp's, for whatever a test wants beyond messages.
        inbox: messages that have come, and bounces.
        begun: whether the log-in was granted, once that is known.
        ended: set once the session has ended.
    """

    def __init__(self, server: Any, account: str, password: str) -> None:
        self.client: Any = ClientXMPP(f"{account}@{server.domain}", password, ssl_context=trusting(server))
        self.client.enable_direct_tls = False
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.begun: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.client.add_event_handler("session_start", lambda _: self._settle(True))
        self.client.add_event_handler("failed_all_auth", lambda _: self._settle(False))
        self.client.add_event_handler("disconnected", lambda _: self._gone())
        self.client.add_event_handler("message", lambda stanza: self._take(stanza.xml))
        self.client.add_event_handler("message_error", lambda stanza: self._take(stanza.xml))
        self.client.connect(server.host, server.port)

    @property
    def address(self) -> str:
        """The full address that the server gave the session."""
        return str(self.client.boundjid)

    def _settle(self, begun: bool) -> None:
        if not self.begun.done():
            self.begun.set_result(begun)

    def _gone(self) -> None:
        self.ended.set()
        self._settle(False)

    def _take(self, xml: Any) -> None:
        source = xml.get("from") or ""
        if "@" not in source:  # a server or one of its services, which no agent would read
            self.inbox.put_nowait(Bounce(source))
            return
        message = wire.decode_element(xml)
        self.inbox.put_nowait(Bounce(message.peer) if xml.get("type") == "error" else message)

    async def send(
        self, to: str, body: str, metadata: Mapping[str, str] = REQUEST, thread: str = "", *, sender: str | None = None
    ) -> None:
        """Send a message as the market's agents write it.

        Args:
            to: receiver.
            body: anything but the empty text.
            metadata: FIPA parameters.
            thread: conversation id.
            sender: what to claim to be; itself if nothing else.
        """
        content = wire.content_of(EncodedMessage(to, body, dict(metadata), thread))
        self.write(wire.addressed(content, to=to, sender=sender or self.address, stanza_id=uuid.uuid4().hex))
        await asyncio.sleep(0)

    def write(self, xml: str) -> None:
        """Write anything to the stream."""
        self.client.send_raw(xml)

    async def written(self) -> None:
        """Wait until all that was sent is in the kernel's hands."""
        async with asyncio.timeout(LIMIT_S):
            while self.client.transport is not None and self.client.transport.get_write_buffer_size():
                await asyncio.sleep(0.01)

    async def next(self) -> Any:
        """The next message or bounce."""
        async with asyncio.timeout(LIMIT_S):
            return await self.inbox.get()

    async def close(self) -> None:
        """Leave."""
        with contextlib.suppress(Exception):
            await self.client.disconnect(wait=1.0)
        self.client.abort()


async def connect(server: Any, account: str, password: str | None = None) -> Rogue:
    """Log in and become available.

    Args:
        server: see the module.
        account: local name.
        password: the account's own if none is given.

    Raises:
        PermissionError: the server refuses.
    """
    rogue = Rogue(server, account, server.accounts[account] if password is None else password)
    async with asyncio.timeout(LIMIT_S):
        if not await rogue.begun:
            raise PermissionError(f"{account} is not let in")
    rogue.client.send_presence()
    return rogue


class Entrance:
    """A line to a server on which nobody has logged in yet, encrypted; for names that no client library would send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._server = server
        self.features = ""

    @classmethod
    async def open(cls, server: Any) -> Self:
        """Connect and encrypt."""
        reader, writer = await asyncio.open_connection(server.host, server.port)
        entrance = cls(reader, writer, server)
        await entrance._begin_stream()
        await entrance.ask("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", "proceed")
        await writer.start_tls(trusting(server), server_hostname=server.domain)
        entrance.features = await entrance._begin_stream()
        return entrance

    async def _begin_stream(self) -> str:
        return await self.ask(_HEADER.format(domain=self._server.domain), "</stream:features>|</features>")

    async def ask(self, xml: str, until: str) -> str:
        """Write something and read until a pattern has come, or the server hangs up; what was read."""
        self._writer.write(xml.encode())
        received = ""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(LIMIT_S):
                while not re.search(until, received) and (read := await self._reader.read(65_536)):
                    received += read.decode(errors="replace")
        return received

    async def register(self, name: str, password: str) -> bool:
        """Try to make an account in band (XEP-0077); whether the server says that it has."""
        fields = f"<username>{escape(name)}</username><password>{escape(password)}</password>"
        return await self.question(f"<query xmlns='jabber:iq:register'>{fields}</query>") == "result"

    async def say(self, xml: str) -> None:
        """Write something, and wait for nothing but its leaving."""
        self._writer.write(xml.encode())
        await self._writer.drain()

    async def show(self, token: str) -> str:
        """Show a token (XEP-0445); see `question`."""
        return await self.question(f"<preauth xmlns='urn:xmpp:pars:0' token={quoteattr(token)}/>")

    async def question(self, inner: str) -> str:
        """Ask before any log-in: `result`, the condition of an error, or the empty string where the server hangs up."""
        answer = await self.ask(f"<iq type='set' id='r1'>{inner}</iq>", "</iq>|<iq[^>]*/>|</stream:stream>")
        if re.search("<iq[^>]*type=.result", answer):
            return "result"
        found = re.search("<error[^>]*><(?:[a-z0-9]+:)?([a-z-]+)", answer)
        return found.group(1) if found else ""

    async def log_in(self, name: str, password: str) -> str | None:
        """Try to log in (SASL PLAIN) and bind; the address that the server gives the session, None where it refuses."""
        secret = base64.b64encode(f"\0{name}\0{password}".encode("utf-8", "surrogatepass")).decode()
        answer = await self.ask(
            f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{secret}</auth>",
            "success|</failure>|</stream:stream>",
        )
        if "success" not in answer:
            return None
        await self._begin_stream()
        bound = await self.ask(
            "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", "</iq>|</stream:stream>"
        )
        found = re.search("<jid>(.*?)</jid>", bound)
        return found.group(1) if found else ""

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with contextlib.suppress(Exception):
            await self._writer.wait_closed()


async def registers(server: Any, name: str, password: str) -> bool:
    """Whether a stranger can make an account of a name."""
    entrance = await Entrance.open(server)
    try:
        return await entrance.register(name, password)
    finally:
        await entrance.close()


async def logs_in(server: Any, name: str, password: str) -> str | None:
    """The address of the session that a log-in opens, None where it is refused."""
    entrance = await Entrance.open(server)
    try:
        return await entrance.log_in(name, password)
    finally:
        await entrance.close()
