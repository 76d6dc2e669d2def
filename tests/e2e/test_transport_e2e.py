"""The transport over sessions that are cut on Prosody, and what both kinds of server keep to themselves."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import psutil
import pytest

from ramp.rfql.encoded_message import EncodedMessage
from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent
from tests.e2e.waiting import LIMIT_S

pytestmark = pytest.mark.e2e

CFP = {"performative": "cfp", "ontology": "ComputeMarket"}
POLICY = LinkPolicy(backoff_first_s=0.1, backoff_max_s=1.0)


class User(MarketAgent):
    """Keeps what arrives."""

    def __init__(self, name, server):
        settings = TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file, policy=POLICY)
        super().__init__(f"{name}@localhost", "secret", settings)
        self.inbox = asyncio.Queue()

    async def on_message(self, message):
        self.inbox.put_nowait((message.peer, message.metadata, message.thread, message.body))

    async def next(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.inbox.get()


@contextlib.asynccontextmanager
async def users(server, *names):
    await asyncio.to_thread(server.ensure_accounts, dict.fromkeys(names, "secret"))
    agents = [User(name, server) for name in names]
    await asyncio.gather(*(agent.start() for agent in agents))
    try:
        yield agents
    finally:
        await asyncio.gather(*(agent.stop() for agent in agents))


async def until(condition):
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_session_cut_in_mid_traffic_resumes_without_loss(prosody_server):
    """Nothing is sent twice by the test: stream management alone must carry everything over two cuts."""
    async with users(prosody_server, "writer", "reader") as (writer, reader):
        for number in range(200):
            if number in (60, 130):
                await writer.wait_connected()
                await until(lambda: writer.client.acknowledging)
                writer.client.transport.abort()
            await writer.send(EncodedMessage(str(reader.jid), f"{number}", CFP, "c"))
            await asyncio.sleep(0)
        missing = {f"{number}" for number in range(200)}
        while missing:  # at least once: what was not confirmed comes twice
            missing.discard((await reader.next())[3])
        assert writer.counters.resumed >= 2


@pytest.mark.full
@pytest.mark.parametrize("part", ["<message type='chat'>", "<message type='chat'><bo"], ids=["deaf", "broken"])
async def test_session_cut_in_the_middle_of_a_stanza_hears_again(prosody_server, part):
    """Prosody 0.12 reads a resumed session on from where the old line ended, and so takes it for nonsense."""
    async with users(prosody_server, "cut", "peer") as (cut, peer):
        assert await cut.drain()
        cut.client.send_raw(part)
        await cut.client.writable()
        await peer.send(EncodedMessage(str(peer.jid), "the server has read it", {"performative": "inform"}, ""))
        await peer.next()
        cut.client.transport.abort()
        await until(lambda: not cut.is_connected)
        await cut.send(EncodedMessage(str(peer.jid), "from the cut one", {"performative": "inform"}, ""))
        await peer.send(EncodedMessage(str(cut.jid), "to the cut one", {"performative": "inform"}, ""))
        assert (await peer.next())[3] == "from the cut one"
        assert (await cut.next())[3] == "to the cut one"
        assert cut.counters.sessions == 2


@pytest.mark.full
async def test_what_the_server_never_confirmed_is_sent_again_to_its_successor(prosody_server):
    """The line is dead but not yet noticed when messages are written; then the server loses its sessions too."""
    async with users(prosody_server, "writer", "reader") as (writer, reader):
        assert await writer.drain()
        psutil.Process(prosody_server.pid).suspend()
        for number in range(10):
            await writer.send(EncodedMessage(str(reader.jid), f"{number}", {"performative": "inform"}, ""))
        assert writer.client.unacknowledged()
        prosody_server.kill()
        await until(lambda: not writer.is_connected)
        await writer.send(EncodedMessage(str(reader.jid), "10", {"performative": "inform"}, ""))
        prosody_server.start()
        assert [(await reader.next())[3] for _ in range(11)] == [f"{number}" for number in range(11)]
        assert writer.counters.sessions == 2


def test_servers_listen_on_loopback_only(xmpp_server):
    process = psutil.Process(xmpp_server.pid)
    listening = {
        (line.laddr.ip, line.laddr.port)
        for one in [process, *process.children(recursive=True)]
        for line in one.net_connections()
        if line.status == psutil.CONN_LISTEN
    }
    assert listening == {("127.0.0.1", xmpp_server.port)}


def test_nothing_is_said_before_encryption(xmpp_server):
    """The server demands STARTTLS: no log-in mechanism is offered in the clear (RFC 6120, 5.3.1)."""
    with socket.create_connection((xmpp_server.host, xmpp_server.port), timeout=LIMIT_S) as line:
        line.sendall(
            b"<stream:stream to='localhost' xmlns='jabber:client' "
            b"xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        )
        received = b""
        while b"starttls" not in received:
            received += line.recv(4096)
        assert b"mechanism" not in received
        assert b"register" not in received
