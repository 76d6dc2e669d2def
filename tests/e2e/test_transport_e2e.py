"""The transport over sessions that are cut on Prosody, and what both kinds of server keep to themselves."""

import asyncio
import shutil
import socket

import psutil
import pytest

from ramp.errors import TransportError
from ramp.model.acl import EncodedMessage
from ramp.servers.prosody import ProsodyServer, prosody_executable
from ramp.xmpp.link import LinkPolicy, TransportSettings
from tests.integration.transport.transport_party import Party, parties
from tests.waiting import LIMIT_S, soon

pytestmark = pytest.mark.e2e

LATER = LinkPolicy(backoff_first_s=0.1, backoff_max_s=1.0)


async def test_session_cut_in_mid_traffic_resumes_without_loss(prosody_server):
    """Nothing is sent twice by the test: stream management alone must carry everything over two cuts."""
    async with parties(prosody_server, "writer", "reader", policy=LATER) as (writer, reader):
        for number in range(200):
            if number in (60, 130):
                await soon(lambda: writer.is_connected)
                await soon(lambda: writer.client.acknowledging)
                # between two stanzas (a cut within one is tested below); what follows is written to a dead line
                assert await writer.drain()
                writer.client.transport.abort()
            await writer.send(EncodedMessage(str(reader.jid), f"{number}", {"performative": "inform"}, "c"))
            await asyncio.sleep(0)
        missing = {f"{number}" for number in range(200)}
        while missing:  # at least once: what was not confirmed comes twice
            missing.discard(await reader.next_body())
        assert writer.story.count("resumed") >= 2


@pytest.mark.full
@pytest.mark.parametrize("part", ["<message type='chat'>", "<message type='chat'><bo"], ids=["deaf", "broken"])
async def test_session_cut_in_the_middle_of_a_stanza_hears_again(prosody_server, part):
    """Prosody 0.12 reads a resumed session on from where the old line ended, and so takes it for nonsense."""
    async with parties(prosody_server, "cut", "peer") as (cut, peer):
        assert await cut.drain()
        cut.client.send_raw(part)
        await cut.client.writable()
        await peer.send(EncodedMessage(str(peer.jid), "the server has read it", {"performative": "inform"}, ""))
        await peer.next()
        cut.client.transport.abort()
        await soon(lambda: not cut.is_connected)
        await cut.send(EncodedMessage(str(peer.jid), "from the cut one", {"performative": "inform"}, ""))
        await peer.send(EncodedMessage(str(cut.jid), "to the cut one", {"performative": "inform"}, ""))
        assert await peer.next_body() == "from the cut one"
        assert await cut.next_body() == "to the cut one"
        assert cut.story.count("up") == 2


@pytest.mark.full
async def test_what_the_server_never_confirmed_is_sent_again_to_its_successor(prosody_server):
    """The line is dead but not yet noticed when messages are written; then the server loses its sessions too."""
    async with parties(prosody_server, "writer", "reader") as (writer, reader):
        assert await writer.drain()
        psutil.Process(prosody_server.pid).suspend()
        for number in range(10):
            await writer.send(EncodedMessage(str(reader.jid), f"{number}", {"performative": "inform"}, ""))
        assert writer.client.unacknowledged()
        prosody_server.kill()
        await soon(lambda: not writer.is_connected)
        await writer.send(EncodedMessage(str(reader.jid), "10", {"performative": "inform"}, ""))
        prosody_server.start()
        assert [await reader.next_body() for _ in range(11)] == [f"{number}" for number in range(11)]
        assert writer.story.count("up") == 2


class OpenProsody(ProsodyServer):
    """A server that registers everyone, as its owner may configure it."""

    def _command(self, certificate):
        command, path = super()._command(certificate), self.state_dir / "prosody.cfg.lua"
        text = path.read_text().replace('"ramp_registration"', '"register_ibr"')
        text = text.replace('; "register"; "register_ibr"', "").replace("registration = false", "registration = true")
        path.write_text(text)
        return command


async def test_agents_make_their_accounts_on_a_server_that_lets_them(tmp_path):
    """Also again, after it has lost them; and nobody gets the account of another."""
    if prosody_executable() is None:
        pytest.skip("Prosody is not installed")
    with OpenProsody(tmp_path / "open") as server:
        settings = TransportSettings(
            servers=((server.host, server.port),), ca_file=server.ca_file, register=True, policy=LATER
        )
        agent = Party("new", settings)
        await agent.start()
        try:
            server.stop()
            shutil.rmtree(server.state_dir / "data")
            server.start()
            await soon(lambda: len(agent.story) > 1 and agent.is_connected)
            thief = Party("new", settings)
            thief.password = "another"
            with pytest.raises(TransportError, match="refuses the registration: conflict"):
                await thief.start()
        finally:
            await agent.stop()


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
